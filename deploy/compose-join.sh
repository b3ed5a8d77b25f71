#!/usr/bin/env bash
# Makes the join token of the device of compose.yaml, as its operator. Runs at each `up`; a token that is there is kept.
# The token works once and for a day: where the device was not started within that, remove the volume `join`.
# REEVE_SETUP_ROOT and REEVE_SETUP_PROGRAM are as in compose-setup.sh.
set -euo pipefail
umask 077
root=${REEVE_SETUP_ROOT:-}
program=${REEVE_SETUP_PROGRAM:-/app/bin/reeve.js}
token=$root/volumes/join/token

[[ -f $token ]] && exit
REEVE_TOKEN=$(cat "$root/owner/operator-token")
export REEVE_TOKEN
node "$program" device join-token demo --label role=demo --auto-confirm --ttl 24h >"$token.new"
mv "$token.new" "$token"
