// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import "golang.org/x/sys/unix"

const (
	tiocsti   = 0x5412 // TIOCSTI
	tioclinux = 0x541c // TIOCLINUX
	tiocsetd  = 0x5423 // TIOCSETD

	// Calls of the btrfs file system are of this type; so are those three that are
	// every file system's by now.
	ioctlType, ioctlTypeBtrfs = uint64(0xff00), uint64(0x9400)

	ficlone       = 0x40049409 // FICLONE
	ficlonerange  = 0x4020940d // FICLONERANGE
	fidedupeRange = 0xc0189436 // FIDEDUPERANGE

	// Calls about bridges (SIOCGIFBR, SIOCSIFBR), DLCI (SIOCADDDLCI, SIOCDELDLCI) and VLANs
	// (SIOCGIFVLAN, SIOCSIFVLAN), and SIOCBRADDBR, SIOCBRDELBR, SIOCBRADDIF and SIOCBRDELIF.
	siocBridge, siocLink, siocBridges = 0x8940, 0x8980, 0x89a0

	rlimitCore = unix.RLIMIT_CORE
	einval     = uint32(unix.EINVAL)

	eprotonosupport = uint32(unix.EPROTONOSUPPORT)
)

// refused are the calls that no command gets, whatever its capabilities and
// whatever a later version of Docker's list may say. Where Docker refuses a
// call today, naming it here keeps it refused.
var refused = []string{
	// A second way into most of the kernel, whose operations no filter sees,
	// and for years its richest source of privilege escalations.
	"io_uring_setup", "io_uring_enter", "io_uring_register",

	// Keyrings are reached by user id and outlive the process. They belong to
	// a user namespace only in part, and hold the host's secrets.
	"add_key", "request_key", "keyctl",

	// Programs in the kernel, and counters that see across processes.
	"bpf", "perf_event_open",

	// Lets a process stop the kernel in the middle of a copy from user memory:
	// what makes kernel races easy to win.
	"userfaultfd",

	// Not a sandbox's business, whatever it is root of.
	"kexec_load", "kexec_file_load", "reboot", "init_module", "finit_module", "delete_module", "create_module",
	"swapon", "swapoff", "acct", "iopl", "ioperm", "nfsservctl", "lookup_dcookie",

	// Opens a file by its inode, past every mount and directory on the way.
	// (name_to_handle_at stays allowed: a handle that nothing opens tells no
	// more than stat does.)
	"open_by_handle_at",

	// The tree of mounts is what confines a command; only the agent, from
	// threads without this filter, changes it.
	"mount", "umount", "umount2", "pivot_root", "open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig",
	"fsmount", "fspick", "mount_setattr",

	// A new user namespace gives its maker every capability in it, and with
	// them all the kernel code that is guarded by nothing else. clone with
	// namespace flags is refused in strictRules.
	"setns", "unshare",
}

// strictRules is what we refuse beyond Docker's list, or allow more narrowly;
// a rule here replaces the list's.
//
// ptrace, process_vm_readv and process_vm_writev stay allowed, as in Docker
// since Linux 4.8: debuggers and strace are useful to agents. The kernel lets a
// process trace only another of the same user whose capabilities are no larger
// than its own, and none outside its user namespace. So a command reaches
// neither another sandbox nor the agent, which keeps capabilities that even the
// sandbox's root does not have.
func strictRules(a arch) map[uint32]rule {
	rules := map[uint32]rule{}
	set := func(name string, r rule) {
		if nr, ok := a.lookup(name); ok {
			rules[nr] = r
		}
	}
	for _, name := range refused {
		set(name, always(retErrno(eperm)))
	}

	// A filter cannot read clone3's flags, they lie behind a pointer; Docker
	// refuses the call. Here the threads that carry this filter fork commands
	// into their cgroups with it. What it could make is refused by the kernel
	// itself: a user namespace by the limit of zero that the agent sets (package
	// inside), every other one by the lack of CAP_SYS_ADMIN.
	set("clone3", always(retAllow))
	// The lower half is all that clone looks at. 0x80, CLONE_NEWTIME, is part
	// of the exit signal here and no flag.
	set("clone", unless(condition{arg: 0, op: opNE, mask: namespaces, value: 0}))

	// Links user pages into pipes without a copy: twice the root of a
	// write-through-a-reference hole. ENOSYS, so that callers copy instead.
	set("vmsplice", always(retErrno(enosys)))

	// The kernel counts all contexts of the host together (fs.aio-max-nr): one
	// sandbox could leave none to the others and to the host.
	for _, name := range []string{"io_setup", "io_destroy", "io_submit", "io_getevents", "io_pgetevents", "io_cancel"} {
		set(name, always(retErrno(enosys)))
	}

	// A core limit of 1 keeps the host's core_pattern program from being started
	// for a crash; 0 does not. So nobody changes it. And nobody sets the limits
	// of another process: process 1 has the same user id as the sandbox's root.
	// EINVAL is what programs that forbid themselves core dumps put up with.
	set("setrlimit", rule{clauses: []clause{{{arg: 0, op: opNE, mask: lowWord, value: rlimitCore}}}, pass: retAllow, fail: retErrno(einval)})
	set("prlimit64", rule{clauses: []clause{
		{{arg: 2, op: opEQ, mask: allBits, value: 0}},
		{{arg: 0, op: opEQ, mask: lowWord, value: 0}, {arg: 1, op: opNE, mask: lowWord, value: rlimitCore}},
	}, pass: retAllow, fail: retErrno(einval)})

	// Docker names the families that it refuses. We name those that programs
	// use; the rest (AF_ALG, AF_VSOCK, AF_PACKET, AF_TIPC, AF_RDS …) are
	// thinly used kernel code, and some load a module for the asking.
	// So are the internet's own protocols but these: SCTP, DCCP and L2TP are modules that
	// load for the asking on Debian, and nothing of theirs leaves a sandbox anyway.
	// Of netlink's, routes and addresses, lists of sockets, and events of devices: what
	// libraries and tools ask without a right. The rest are modules that load for the asking,
	// by number or, generic netlink, by a family's name. The answer is that of a kernel without.
	sockets := among(0, unix.AF_UNIX)
	// Two values that differ in one bit are one comparison without that bit.
	protocols := func(family, families, protocol, protocols uint64) {
		sockets.clauses = append(sockets.clauses, clause{
			{arg: 0, op: opEQ, mask: lowWord &^ (family ^ families), value: family & families},
			{arg: 2, op: opEQ, mask: lowWord &^ (protocol ^ protocols), value: protocol & protocols},
		})
	}
	protocols(unix.AF_INET, unix.AF_INET6, 0, unix.IPPROTO_ICMP)
	for _, p := range []uint64{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMPV6, unix.IPPROTO_MPTCP} {
		protocols(unix.AF_INET, unix.AF_INET6, p, p)
	}
	protocols(unix.AF_NETLINK, unix.AF_NETLINK, unix.NETLINK_ROUTE, unix.NETLINK_SOCK_DIAG)
	protocols(unix.AF_NETLINK, unix.AF_NETLINK, unix.NETLINK_KOBJECT_UEVENT, unix.NETLINK_KOBJECT_UEVENT)
	netlink := among(0, unix.AF_NETLINK)
	netlink.pass = retErrno(eprotonosupport)
	sockets.otherwise = &netlink
	set("socket", sockets)
	// The other door to the same families. Pairs of inet sockets do not exist.
	set("socketpair", among(0, unix.AF_UNIX))

	// TIOCSTI types into the terminal that the command shares with its caller,
	// TIOCLINUX does it on a console, and TIOCSETD loads any line discipline
	// the kernel has a module for. Those about bridges and VLANs load a module, on any
	// socket, before they look at the caller's rights.
	//
	// A volume is a directory of the host's store, without an overlay before it: what
	// btrfs gives to anybody (subvolumes, which no limit of the volume counts; the
	// names and sizes of others) is not for commands.
	ioctl := unless(
		condition{arg: 1, op: opEQ, mask: lowWord, value: tiocsti},
		condition{arg: 1, op: opEQ, mask: lowWord, value: tioclinux},
		condition{arg: 1, op: opEQ, mask: lowWord, value: tiocsetd},
		condition{arg: 1, op: opEQ, mask: lowWord &^ 1, value: siocBridge},
		condition{arg: 1, op: opEQ, mask: lowWord &^ 3, value: siocLink},
		condition{arg: 1, op: opEQ, mask: lowWord &^ 3, value: siocBridges},
		condition{arg: 1, op: opEQ, mask: ioctlType, value: ioctlTypeBtrfs})
	ioctl.clauses = append(ioctl.clauses, among(1, ficlone, ficlonerange, fidedupeRange).clauses...)
	set("ioctl", ioctl)
	return rules
}

const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

func always(ret uint32) rule { return rule{pass: ret, fail: ret} }

// among allows a call whose argument, a 32-bit int, is one of the values.
func among(arg uint8, values ...uint64) rule {
	r := rule{pass: retAllow, fail: retErrno(eperm)}
	for _, v := range values {
		r.clauses = append(r.clauses, clause{{arg: arg, op: opEQ, mask: lowWord, value: v}})
	}
	return r
}

// unless allows a call for which none of the conditions, all opEQ or opNE, holds.
func unless(conditions ...condition) rule {
	var c clause
	for _, one := range conditions {
		if one.op == opEQ {
			one.op = opNE
		} else {
			one.op = opEQ
		}
		c = append(c, one)
	}
	return rule{clauses: []clause{c}, pass: retAllow, fail: retErrno(eperm)}
}
