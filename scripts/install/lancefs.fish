# SPDX-License-Identifier: Apache-2.0
# fish completion for lancefs and fsck.lancefs
complete -c lancefs -x -a '(__fish_complete_directories)'
complete -c lancefs -s f -d 'stay in the foreground'
complete -c lancefs -s s -d 'one thread'
complete -c lancefs -s d -d 'log each request'
complete -c lancefs -s h -d help
complete -c lancefs -s V -d versions
complete -c lancefs -s o -x -d 'mount options' -a 'ro mode= bases= map= sync nosync passthrough= cache_mb= hooks= hooks_timeout= control_mode= attr_timeout= entry_timeout= max_threads= log_level= log_file= allow_other fsname= subtype= debug'
complete -c fsck.lancefs -x -a '(__fish_complete_directories)'
complete -c fsck.lancefs -s n -d 'change nothing'
complete -c fsck.lancefs -s y -d 'repair what needs no guess'
complete -c fsck.lancefs -s a -d 'as -y'
complete -c fsck.lancefs -s p -d 'as -y'
complete -c fsck.lancefs -s f -d 'means nothing'
complete -c fsck.lancefs -s v -d 'name what is only counted otherwise'
complete -c fsck.lancefs -s h -l help -d help
complete -c fsck.lancefs -s V -l version -d version
complete -c fsck.lancefs -l relocate -d 'rewrite base paths of a data set that was moved'
