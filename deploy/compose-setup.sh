#!/usr/bin/env bash
# Makes what only the services of compose.yaml may have: certificates, keys, passwords, the first tokens;
# and gives the volumes to the user that the services run as. Runs at each `up`: what is there is kept, but certificates
# that end within 30 days are made anew.
#   /owner    what only the owner has: the authority's key and the operator's token
#   /certs    what registry, policy and NATS have
#   /agent    what the agent service has: nothing of the others
#   /tokens   the hashes of the tokens that may call
#   /volumes  the services' own volumes
# Variables for a run elsewhere: REEVE_SETUP_ROOT stands before each of these folders, REEVE_SETUP_USER is who gets them,
# REEVE_SETUP_PROGRAM is the command line.
set -euo pipefail
umask 077
root=${REEVE_SETUP_ROOT:-}
user=${REEVE_SETUP_USER:-65532:65532}
program=${REEVE_SETUP_PROGRAM:-/app/bin/reeve.js}
owner=$root/owner
certs=$root/certs
agent=$root/agent
export REEVE_TOKENS_FILE=$root/tokens/tokens.json

reeve() { node "$program" "$@"; }

# Whether a certificate exists and is valid for 30 more days.
is_good() {
  [[ -f $1 ]] && node -e '
    const { X509Certificate } = require("node:crypto");
    const end = Date.parse(new X509Certificate(require("node:fs").readFileSync(process.argv[1])).validTo);
    process.exit(end - Date.now() > 30 * 86_400_000 ? 0 : 1);
  ' "$1"
}

[[ -f $owner/ca/ca.crt ]] || reeve service-ca init --out "$owner/ca" >/dev/null
cp "$owner/ca/ca.crt" "$owner/ca.crt"
cp "$owner/ca/ca.crt" "$certs/ca.crt"
cp "$owner/ca/ca.crt" "$agent/ca.crt"
for service in registry policy nats agent; do
  folder=$certs/$service
  [[ $service == agent ]] && folder=$agent
  is_good "$folder/tls.crt" && continue
  [[ -f $folder/tls.crt ]] &&
    echo "the certificate of $service is made anew; NATS reads its own after: docker compose restart nats"
  rm -rf "$folder/new"
  mkdir -p "$folder"
  reeve service-ca issue --ca "$owner/ca" --service "$service" --dns "$service" --dns localhost --ip 127.0.0.1 \
    --out "$folder/new" >/dev/null
  mv "$folder/new"/* "$folder/"
  rmdir "$folder/new"
done

if [[ ! -f $certs/nats-users.conf ]]; then
  head -c 32 /dev/urandom | base64 | tr -d '/+=\n' >"$certs/nats-password"
  cat >"$certs/nats-users.conf" <<END
authorization {
  users = [{
    user: reeve
    password: "$(cat "$certs/nats-password")"
    permissions {
      publish: ["reeve.>", "\$JS.API.>"]
      subscribe: ["reeve.>", "_INBOX.>"]
    }
  }]
}
END
fi
for folder in "$certs" "$agent"; do
  [[ -f $folder/sealing.key ]] || head -c 32 /dev/urandom | base64 >"$folder/sealing.key"
done

if [[ ! -f $owner/operator-token ]]; then
  reeve token create --name operator --role operator >"$owner/operator-token.new"
  mv "$owner/operator-token.new" "$owner/operator-token"
  echo "operator's token:             $(cat "$owner/operator-token")"
  echo "agent's token, shown once:    $(reeve token create --name agent --role agent)"
fi

# As whom the agent service calls: an agent, and for runs over untrusted content one that may call nothing.
own_token() {
  [[ -f $agent/$1 ]] && return
  reeve token create --name "$2" --role "$3" >"$agent/$1.new"
  mv "$agent/$1.new" "$agent/$1"
}
own_token token agent-service agent
own_token trigger-token agent-service-untrusted trigger

# What compose-join.sh reads is the services' user's; the authority's key stays with root.
chown "$user" "$owner" "$owner/operator-token" "$owner/ca.crt"
chown -R "$user" "$certs" "$agent" "$root/tokens"
for volume in "$root"/volumes/*; do
  chown "$user" "$volume"
  chmod 0700 "$volume"
done
