import type { ProgramRule, Usage } from "../rule.ts";

const PS = "-a --all -q --quiet -n=int --last=int -l --latest -s --size --no-trunc -f=any --filter=any --format=any";
const IMAGES = "-a --all -q --quiet --no-trunc --digests -f=any --filter=any --format=any --tree";
const LIST = "-q --quiet -f=any --filter=any --format=any --no-trunc";
const LOGS = "-n=int --tail=any -t --timestamps --since=time --until=time --details";
const STATS = "--no-stream -a --all --no-trunc --format=any";

const psUsage: Usage = { flags: PS };
const imagesUsage: Usage = { flags: IMAGES, operands: "address?" };
const logsUsage: Usage = { flags: LOGS, operands: "name" };
const inspectUsage: Usage = { flags: "-f=any --format=any -s --size --type=name", operands: "address+" };
const statsUsage: Usage = { flags: STATS, operands: "name*", needs: "--no-stream" };
const namesUsage: Usage = { operands: "name+" };

const COMPOSE: Usage = {
  flags: "-p=name --project-name=name",
  subcommands: {
    ps: { flags: "-a --all -q --quiet --services --format=name --status=name --filter=any", operands: "name*" },
    ls: { flags: "-a --all -q --quiet --format=name --filter=any" },
    images: { flags: "-q --quiet --format=name", operands: "name*" },
    logs: {
      flags: "-n=int --tail=any -t --timestamps --no-color --no-log-prefix --since=time --until=time",
      operands: "name*",
    },
    "top version": { operands: "name*" },
  },
};

const KUBE = `-n=name --namespace=name -l=any --selector=any -o=output --output=output -A --all-namespaces --show-labels --no-headers --sort-by=any
  --field-selector=any --chunk-size=int --ignore-not-found --show-kind --request-timeout=word -L=names --label-columns=names --show-events?=name`;

/** Containers and clusters: what runs, and what it says. */
export const containerRules: readonly ProgramRule[] = [
  {
    program: "docker podman nerdctl",
    folders: ["/usr/bin", "/usr/local/bin"],
    sandbox: "required",
    subcommands: {
      ps: psUsage,
      images: imagesUsage,
      logs: logsUsage,
      inspect: inspectUsage,
      stats: statsUsage,
      "top port diff": { operands: "name name?" },
      history: { flags: "-H --human -q --quiet --no-trunc --format=any", operands: "address" },
      "version info": { flags: "-f=any --format=any" },
      container: {
        subcommands: {
          "ls list ps": psUsage,
          logs: logsUsage,
          inspect: inspectUsage,
          stats: statsUsage,
          "top port diff": namesUsage,
        },
      },
      image: {
        subcommands: {
          "ls list": imagesUsage,
          inspect: inspectUsage,
          history: { flags: "-q --no-trunc --format=any", operands: "address" },
        },
      },
      "volume network": {
        subcommands: { "ls list": { flags: LIST }, inspect: { flags: "-f=any --format=any -v", operands: "name+" } },
      },
      system: { subcommands: { df: { flags: "-v --verbose --format=any" }, info: { flags: "-f=any --format=any" } } },
      "node service stack": { subcommands: { ls: { flags: LIST } } },
      context: { subcommands: { "ls show": { flags: "-q --quiet --format=any" } } },
      compose: COMPOSE,
    },
    match: [
      "docker ps -a",
      "docker images",
      "docker logs --tail 100 web",
      "docker inspect web",
      "docker stats --no-stream",
      "docker image ls",
      "docker compose ps",
      "docker system df -v",
      "docker ps --format '{{.Names}}'",
      "docker network ls",
      "docker compose logs --tail=50 web",
    ],
    not_match: [
      "docker run alpine",
      "docker exec web id",
      "docker logs -f web",
      "docker logs --follow web",
      "docker -H tcp://x ps",
      "docker --host x ps",
      "docker --context x ps",
      "docker --config x ps",
      "docker stats",
      "docker rm web",
      "docker image prune",
      "docker system prune",
      "docker compose up",
      "docker compose -f x ps",
      "docker events",
      "docker search x",
      "docker cp web:/a b",
      "docker pull x",
      "docker compose logs -f",
      "docker compose --env-file x ps",
      "docker save x",
      "docker login",
    ],
  },
  {
    program: "docker-compose",
    folders: ["/usr/bin", "/usr/local/bin"],
    sandbox: "required",
    ...COMPOSE,
    match: ["docker-compose ps"],
    not_match: ["docker-compose up", "docker-compose -f x ps", "docker-compose exec web id"],
  },
  {
    program: "helm",
    folders: ["/usr/bin", "/usr/local/bin"],
    sandbox: "required",
    subcommands: {
      version: { flags: "--short --client" },
      "list ls": {
        flags: "-A --all-namespaces -a --all -n=name --namespace=name -o=name --output=name -q --short -d -r",
      },
      history: { flags: "-n=name --namespace=name -o=name --max=int", operands: "name" },
      repo: { subcommands: { "list ls": { flags: "-o=name" } } },
    },
    match: ["helm version", "helm list -A", "helm repo list"],
    not_match: [
      "helm install a b",
      "helm get values x",
      "helm --kube-token x list",
      "helm list --kubeconfig x",
      "helm list --post-renderer x",
      "helm repo add a b",
    ],
  },
  {
    program: "kubectl",
    folders: ["/usr/bin", "/usr/local/bin"],
    sandbox: "required",
    flags: "-n=name --namespace=name",
    subcommands: {
      get: { flags: KUBE, operands: "resource name*" },
      describe: { flags: KUBE, operands: "resource name*" },
      logs: {
        flags:
          "-n=name --namespace=name -c=name --container=name -p --previous --tail=int --since=word --since-time=time --timestamps --all-containers --prefix -l=any --selector=any --limit-bytes=int --max-log-requests=int",
        operands: "address? name?",
      },
      top: {
        subcommands: {
          "pod pods po node nodes no": {
            flags: "-n=name --namespace=name -A --all-namespaces --containers --sort-by=any --no-headers -l=any",
            operands: "name?",
          },
        },
      },
      "version cluster-info": { flags: "--client --short -o=output --output=output" },
      "api-resources api-versions": { flags: "--namespaced --verbs=names -o=output --no-headers --api-group=name" },
      explain: { flags: "--recursive --api-version=address", operands: "resource" },
      config: {
        subcommands: {
          "current-context get-contexts get-clusters get-users": { flags: "-o=name --no-headers", operands: "name?" },
          view: { flags: "--minify -o=output" },
        },
      },
      rollout: {
        subcommands: { history: { flags: "-n=name --namespace=name --revision=int", operands: "resource name?" } },
      },
      auth: {
        subcommands: {
          "can-i": { flags: "-n=name --namespace=name -A --list", operands: "name* resource*" },
          whoami: {},
        },
      },
      events: { flags: "-n=name --namespace=name -A --all-namespaces --for=any --types=names" },
    },
    match: [
      "kubectl get pods -A",
      "kubectl -n kube-system get deploy -o wide",
      "kubectl describe pod web-1",
      "kubectl logs web-1 --tail=100",
      "kubectl top nodes",
      "kubectl get nodes -o json",
      "kubectl config current-context",
      "kubectl get pod/web -o yaml",
      "kubectl version --client",
    ],
    not_match: [
      "kubectl delete pod x",
      "kubectl get secrets",
      "kubectl get secret x -o yaml",
      "kubectl get pods,secrets",
      "kubectl get secret/x",
      "kubectl describe secrets",
      "kubectl logs -f x",
      "kubectl get pods -w",
      "kubectl --kubeconfig x get pods",
      "kubectl -s https://x get pods",
      "kubectl --token=x get pods",
      "kubectl --context x get pods",
      "kubectl get --raw /x",
      "kubectl get -f x",
      "kubectl exec x -- id",
      "kubectl apply -f x",
      "kubectl config view --raw",
      "kubectl config use-context x",
      "kubectl get pods -o jsonpath-file=x",
      "kubectl proxy",
      "kubectl port-forward x 1",
      "kubectl cp a:/b c",
      "kubectl edit x",
    ],
  },
];
