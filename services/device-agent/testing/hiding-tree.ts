/**
 * Text for a shell that makes a tree which hides: children with sessions of their own, double forks, one that ignores SIGTERM, one
 * with an empty environment, all with their output closed. It prints "ready" when four of it sleep, and does not end by itself. Each
 * process of it has the tag in its command line.
 */
export function hidingTree(tag: string): string {
  return `
    setsid sleep ${tag}1 </dev/null >/dev/null 2>&1 &
    (setsid sh -c 'setsid sleep ${tag}2 & wait' </dev/null >/dev/null 2>&1 &)
    (setsid sh -c 'trap "" TERM; sleep ${tag}3; sleep ${tag}4' </dev/null >/dev/null 2>&1 &)
    (setsid env -i sleep ${tag}5 </dev/null >/dev/null 2>&1 &)
    until [ "$(grep -lazs '^${tag}[0-9]$' /proc/[0-9]*/cmdline | wc -l)" -ge 4 ]; do sleep 0.02; done
    echo ready; exec sleep ${tag}6`;
}
