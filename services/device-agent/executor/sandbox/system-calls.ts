/** The numbers that the filter needs of one architecture. */
export interface SystemCalls {
  /** AUDIT_ARCH of linux/audit.h: what the kernel reports of a call. */
  audit: number;
  /** Calls that are refused whatever their arguments. */
  refused: readonly number[];
  socket: number;
  clone: number;
  clone3: number;
  ioctl: number;
  /** From this number on a call has the ABI x32, which is another one on the same architecture. */
  foreignFrom?: number;
}

/** Calls that have one number on all architectures: those that came after the kernel unified them. */
const NEW = {
  io_uring_setup: 425,
  io_uring_enter: 426,
  io_uring_register: 427,
  open_tree: 428,
  move_mount: 429,
  fsopen: 430,
  fsconfig: 431,
  fsmount: 432,
  fspick: 433,
  pidfd_getfd: 438,
  process_madvise: 440,
  mount_setattr: 442,
  quotactl_fd: 443,
  open_tree_attr: 467,
} as const;

/** arch/x86/entry/syscalls/syscall_64.tbl. */
const X64 = {
  ptrace: 101,
  syslog: 103,
  vhangup: 153,
  modify_ldt: 154,
  pivot_root: 155,
  adjtimex: 159,
  chroot: 161,
  acct: 163,
  settimeofday: 164,
  mount: 165,
  umount2: 166,
  swapon: 167,
  swapoff: 168,
  reboot: 169,
  sethostname: 170,
  setdomainname: 171,
  iopl: 172,
  ioperm: 173,
  init_module: 175,
  delete_module: 176,
  quotactl: 179,
  nfsservctl: 180,
  lookup_dcookie: 212,
  clock_settime: 227,
  kexec_load: 246,
  add_key: 248,
  request_key: 249,
  keyctl: 250,
  unshare: 272,
  perf_event_open: 298,
  name_to_handle_at: 303,
  open_by_handle_at: 304,
  clock_adjtime: 305,
  setns: 308,
  process_vm_readv: 310,
  process_vm_writev: 311,
  kcmp: 312,
  finit_module: 313,
  kexec_file_load: 320,
  bpf: 321,
  userfaultfd: 323,
} as const;

/** include/uapi/asm-generic/unistd.h. */
const ARM64 = {
  lookup_dcookie: 18,
  umount2: 39,
  mount: 40,
  pivot_root: 41,
  nfsservctl: 42,
  chroot: 51,
  vhangup: 58,
  quotactl: 60,
  acct: 89,
  unshare: 97,
  kexec_load: 104,
  init_module: 105,
  delete_module: 106,
  clock_settime: 112,
  syslog: 116,
  ptrace: 117,
  reboot: 142,
  sethostname: 161,
  setdomainname: 162,
  settimeofday: 170,
  adjtimex: 171,
  add_key: 217,
  request_key: 218,
  keyctl: 219,
  swapon: 224,
  swapoff: 225,
  perf_event_open: 241,
  name_to_handle_at: 264,
  open_by_handle_at: 265,
  clock_adjtime: 266,
  setns: 268,
  process_vm_readv: 270,
  process_vm_writev: 271,
  kcmp: 272,
  finit_module: 273,
  bpf: 280,
  userfaultfd: 282,
  kexec_file_load: 294,
} as const;

/** By Node's name of the architecture. Others have no filter, and so no sandbox. */
export const SYSTEM_CALLS: ReadonlyMap<string, SystemCalls> = new Map([
  [
    "x64",
    {
      audit: 0xc000003e,
      refused: [...Object.values(X64), ...Object.values(NEW)],
      socket: 41,
      clone: 56,
      clone3: 435,
      ioctl: 16,
      foreignFrom: 0x40000000,
    },
  ],
  [
    "arm64",
    {
      audit: 0xc00000b7,
      refused: [...Object.values(ARM64), ...Object.values(NEW)],
      socket: 198,
      clone: 220,
      clone3: 435,
      ioctl: 29,
    },
  ],
]);
