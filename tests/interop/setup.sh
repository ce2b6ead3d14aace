#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install both stock engines into build/engines (about 450 MB); what is there already stays.
# LANCEFS_ENGINES names another folder.
set -eu
project=$(cd "$(dirname "$0")/../.." && pwd)
engines=${LANCEFS_ENGINES:-$project/build/engines}

for engine in lance10:0.37.1 lance12:0.39.0; do
    dir=$engines/${engine%%:*}
    [ -d "$dir/node_modules/@lancedb/lancedb" ] && [ -d "$dir/node_modules/apache-arrow" ] && continue
    mkdir -p "$dir"
    # 0.39.0 asks for Node 22 and runs on 20: npm only warns.
    npm install --prefix "$dir" --no-audit --no-fund --loglevel=error "@lancedb/lancedb@${engine##*:}" apache-arrow@18
done
