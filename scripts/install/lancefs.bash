# SPDX-License-Identifier: Apache-2.0
# bash completion for lancefs and fsck.lancefs
_lancefs() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} before="" word
    local options="ro mode= bases= map= sync nosync passthrough= cache_mb= hooks= hooks_timeout= control_mode= attr_timeout=
        entry_timeout= max_threads= log_level= log_file= allow_other fsname= subtype= debug"
    # the shell breaks words at =
    [[ $cur == "=" ]] && cur="" && prev="${COMP_WORDS[COMP_CWORD - 1]}="
    [[ $prev == "=" ]] && prev="${COMP_WORDS[COMP_CWORD - 2]}="
    case $prev in
    *mode=) word="graft link copy" ;;
    *passthrough=) word="auto on off" ;;
    *log_level=) word="error warning info debug" ;;
    -o) word=$options ;;
    *hooks=)
        COMPREPLY=($(compgen -d -- "$cur"))
        return
        ;;
    *)
        if [[ $cur == -* ]]; then
            COMPREPLY=($(compgen -W "-f -s -d -h -V -o" -- "$cur"))
        else
            COMPREPLY=($(compgen -d -- "$cur"))
        fi
        return
        ;;
    esac
    if [[ $cur == *,* ]]; then
        before=${cur%,*},
        cur=${cur##*,}
        word=$options
    fi
    COMPREPLY=($(compgen -P "$before" -W "$word" -- "$cur"))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null
}
_fsck_lancefs() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "-n -y -a -p -f -v -h -V --relocate --help --version" -- "$cur"))
    else
        COMPREPLY=($(compgen -d -- "$cur"))
    fi
}
complete -o filenames -F _lancefs lancefs
complete -o filenames -F _fsck_lancefs fsck.lancefs
