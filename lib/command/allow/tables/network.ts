import type { ProgramRule, Usage } from "../rule.ts";

const SHOW: Usage = { flags: "", operands: "show|list|ls|lst address*", check: namesVerb };
const ROUTE: Usage = { flags: "", operands: "show|list|ls|get address*", check: namesVerb };

/** Programs that say how this machine's network is set up. None of them sends anything. */
export const networkRules: readonly ProgramRule[] = [
  {
    program: "ss",
    sandbox: "optional",
    flags:
      "-t --tcp -u --udp -l --listening -n --numeric -p --processes -a --all -r --resolve -e --extended -m --memory -i --info -s --summary -4 --ipv4 -6 --ipv6 -x --unix -w --raw -o --options -H --no-header -O --oneline -S -d -0 -Z -f=name --family=name",
    operands: "filter*",
    match: ["ss -tlnp", "ss -s", "ss -tan state established", "ss -o state established '( dport = :443 )'"],
    not_match: ["ss -K dst 1.2.3.4", "ss --kill", "ss -E", "ss -D x", "ss -F x", "ss -N x"],
  },
  {
    program: "netstat",
    sandbox: "optional",
    flags:
      "-t --tcp -u --udp -l --listening -n --numeric -p --programs -a --all -r --route -i --interfaces -s --statistics -e -4 -6 -x -w -o -W",
    match: ["netstat -tulpn", "netstat -rn"],
    not_match: ["netstat -c", "netstat --continuous"],
  },
  {
    program: "ip",
    sandbox: "optional",
    style: "single",
    flags:
      "-4 -6 -s -stats -d -details -br -brief -j -json -p -pretty -o -oneline -h -human -c=never -color=never -0 -r -t",
    subcommands: {
      "address addr a link l rule neighbor neigh n maddress maddr tunnel": {
        ...SHOW,
        operands: "show|list|ls|lst? address*",
      },
      "route r": { ...ROUTE, operands: "show|list|ls|get? address*" },
    },
    match: [
      "ip addr",
      "ip a",
      "ip -br link show",
      "ip route get 1.1.1.1",
      "ip -4 addr show dev eth0",
      "ip r",
      "ip -s link",
    ],
    not_match: [
      "ip link set eth0 down",
      "ip addr add 1.2.3.4 dev eth0",
      "ip route del default",
      "ip netns exec x id",
      "ip -b x",
      "ip -batch x",
      "ip -n x addr",
      "ip monitor",
      "ip addr flush dev eth0",
      "ip link s eth0 down",
      "ip -force addr",
      "ip route flush cache",
      "ip neigh flush all",
    ],
  },
  {
    program: "ifconfig",
    sandbox: "optional",
    flags: "-a -s",
    operands: "name?",
    match: ["ifconfig", "ifconfig eth0"],
    not_match: ["ifconfig eth0 down", "ifconfig eth0 1.2.3.4"],
  },
  {
    program: "arp",
    sandbox: "optional",
    flags: "-a -n -e -v -i=name",
    match: ["arp -an"],
    not_match: ["arp -d x", "arp -s a b", "arp -f x"],
  },
  {
    program: "route",
    sandbox: "optional",
    flags: "-n -e -4 -6",
    match: ["route -n"],
    not_match: ["route add default x", "route del x"],
  },
];

/** The word behind the object has to be one that shows; what is left out means "show". */
function namesVerb(words: readonly string[]): string | undefined {
  return words.length === 0 || /^(?:show|list|ls|lst|get)$/.test(words[0] ?? "")
    ? undefined
    : "it may change something";
}
