// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	profile "github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var capabilitySets = map[string][]string{
	"none":    nil,
	"sandbox": {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_SETUID", "CAP_SETGID", "CAP_KILL", "CAP_NET_BIND_SERVICE"},
	"chroot":  {"CAP_SYS_CHROOT", "CAP_SYS_NICE"},
	"all": {"CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_MODULE", "CAP_SYS_PTRACE", "CAP_BPF", "CAP_PERFMON",
		"CAP_DAC_READ_SEARCH", "CAP_SYS_RAWIO", "CAP_SYS_TIME", "CAP_SYSLOG", "CAP_SYS_PACCT", "CAP_SYS_TTY_CONFIG"},
}

func eachFilter(t *testing.T, f func(t *testing.T, a arch, capabilities []string, prog []byte)) {
	for _, goarch := range []string{"amd64", "arm64"} {
		for name, capabilities := range capabilitySets {
			t.Run(goarch+"/"+name, func(t *testing.T) {
				a, err := archOf(goarch)
				if err != nil {
					t.Fatal(err)
				}
				prog, err := Filter(Options{Capabilities: capabilities, Arch: goarch})
				if err != nil {
					t.Fatal(err)
				}
				f(t, a, capabilities, prog)
			})
		}
	}
}

func run(t interface{ Fatalf(string, ...any) }, prog []byte, c call) uint32 {
	ret, _, err := execute(prog, c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	return ret
}

// Interesting argument values: what the rules compare with, one beside it, and
// the same with something in the upper half.
func argument(t *rapid.T, label string) uint64 {
	low := rapid.OneOf(
		rapid.SampledFrom([]uint32{0, 1, 2, 8, 10, 16, 17, 37, 38, 39, 40, 41, 0x5411, 0x5412, 0x5413, 0x541c, 0x5423,
			0x20000, 0x20008, 0x20009, 0xffffffff, 0xfffffffe, 0x80000000, namespaces, unix.CLONE_NEWUSER, unix.CLONE_NEWCGROUP,
			unix.CLONE_VM | unix.CLONE_VFORK | 17, unix.CLONE_NEWNS | 17}),
		rapid.Uint32(),
	).Draw(t, label+" low")
	high := rapid.OneOf(rapid.Just(uint32(0)), rapid.SampledFrom([]uint32{1, 0xffffffff, 0x80000000}), rapid.Uint32()).Draw(t, label+" high")
	return uint64(high)<<32 | uint64(low)
}

func TestFilterDecidesAsTheListsDo(t *testing.T) {
	eachFilter(t, func(t *testing.T, a arch, capabilities []string, prog []byte) {
		ref := referenceOf(a, capabilities)
		for nr := uint32(0); nr <= 600; nr++ {
			for _, arg := range []uint64{0, 1, 1 << 32, 0xffffffff, ^uint64(0)} {
				c := call{nr: nr, arch: a.audit, args: [6]uint64{arg, arg, arg, arg, arg, arg}}
				if got, want := run(t, prog, c), ref.decide(c); got != want {
					t.Errorf("call %d, arguments %#x: got %#x, want %#x", nr, arg, got, want)
				}
			}
		}
		conditional := conditionalNumbers(a)
		rapid.Check(t, func(t *rapid.T) {
			for range 20 {
				c := call{
					arch: a.audit,
					nr: rapid.OneOf(rapid.SampledFrom(conditional), rapid.Uint32Range(0, 600), rapid.Uint32()).
						Draw(t, "nr"),
				}
				for i := range c.args[:3] { // no rule looks further
					c.args[i] = argument(t, "argument")
				}
				if got, want := run(t, prog, c), ref.decide(c); got != want {
					t.Fatalf("%+v: got %#x, want %#x", c, got, want)
				}
			}
		})
	})
}

func conditionalNumbers(a arch) []uint32 {
	var out []uint32
	for _, name := range []string{"clone", "clone3", "personality", "socket", "socketpair", "ioctl"} {
		nr, _ := a.lookup(name)
		out = append(out, nr)
	}
	return out
}

// Any policy, not only today's: all operators, widths and shapes.
func TestCompileAgreesWithTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy{audit: auditArchAMD64, rules: map[uint32]rule{}, other: retErrno(eperm), ceiling: 400}
		ref := reference{arch: arch{audit: auditArchAMD64}, strict: p.rules, last: p.ceiling}
		value := func(label string) uint64 {
			return rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(1<<32, 1<<32+3), rapid.Just(^uint64(0))).Draw(t, label)
		}
		for range rapid.IntRange(0, 120).Draw(t, "rules") {
			r := rule{
				pass: rapid.SampledFrom([]uint32{retAllow, retErrno(enosys)}).Draw(t, "pass"),
				fail: rapid.SampledFrom([]uint32{retErrno(eperm), retErrno(5)}).Draw(t, "fail"),
			}
			for range rapid.IntRange(0, 3).Draw(t, "clauses") {
				var cl clause
				for range rapid.IntRange(1, 3).Draw(t, "conditions") {
					c := condition{
						arg:  rapid.Uint8Range(0, 5).Draw(t, "arg"),
						op:   rapid.SampledFrom([]op{opEQ, opNE, opGT, opGE, opLT, opLE}).Draw(t, "op"),
						mask: rapid.SampledFrom([]uint64{allBits, lowWord}).Draw(t, "mask"),
					}
					if c.op == opEQ || c.op == opNE {
						c.mask = rapid.OneOf(rapid.Just(c.mask), rapid.Just(uint64(2)), rapid.Uint64()).Draw(t, "bits")
					}
					c.value = value("value") & c.mask
					cl = append(cl, c)
				}
				r.clauses = append(r.clauses, cl)
			}
			if rapid.Bool().Draw(t, "otherwise") {
				next := r
				next.pass, r.clauses = retErrno(93), next.clauses[:len(next.clauses)/2]
				r.otherwise = &next
			}
			p.rules[rapid.Uint32Range(0, p.ceiling).Draw(t, "nr")] = r
		}
		prog, err := compile(p)
		if err != nil {
			t.Fatal(err)
		}
		for nr := range p.ceiling + 3 {
			c := call{nr: nr, arch: auditArchAMD64}
			for i := range c.args {
				c.args[i] = value("argument")
			}
			if got, want := run(t, prog, c), ref.decide(c); got != want {
				t.Fatalf("%+v by %+v: got %#x, want %#x", c, p.rules[nr], got, want)
			}
		}
	})
}

func TestFilterRefusesForeignCalls(t *testing.T) {
	eachFilter(t, func(t *testing.T, a arch, _ []string, prog []byte) {
		getpid, _ := a.lookup("getpid")
		for _, tc := range []struct {
			name string
			call call
			want uint32
		}{
			{"i386 is killed", call{nr: 20, arch: 0x40000003}, retKillProcess},
			{"32-bit arm is killed", call{nr: 20, arch: 0x40000028}, retKillProcess},
			{"no architecture is killed", call{nr: getpid}, retKillProcess},
			{"the native call passes", call{nr: getpid, arch: a.audit}, retAllow},
			{"x32 does not exist", call{nr: 1<<30 | getpid, arch: a.audit}, retErrno(enosys)},
			{"a negative number does not exist", call{nr: ^uint32(0), arch: a.audit}, retErrno(enosys)},
			{"the first number after the list does not exist", call{nr: 467, arch: a.audit}, retErrno(enosys)},
		} {
			if got := run(t, prog, tc.call); got != tc.want {
				t.Errorf("%s: got %#x, want %#x", tc.name, got, tc.want)
			}
		}
	})
}

// The strict list is checked by name here, not through its own data.
func TestFilterIsStricterThanDocker(t *testing.T) {
	never := strings.Fields(`io_uring_setup io_uring_enter io_uring_register add_key request_key keyctl bpf
		perf_event_open userfaultfd kexec_load kexec_file_load open_by_handle_at mount umount2 pivot_root open_tree
		move_mount fsopen fsconfig fsmount fspick mount_setattr setns unshare init_module finit_module delete_module
		reboot swapon swapoff acct`)
	eachFilter(t, func(t *testing.T, a arch, _ []string, prog []byte) {
		ask := func(name string, args ...uint64) uint32 {
			nr, ok := a.lookup(name)
			if !ok {
				t.Fatalf("no number for %s", name)
			}
			c := call{nr: nr, arch: a.audit}
			copy(c.args[:], args)
			return run(t, prog, c)
		}
		for _, name := range never {
			if got, want := ask(name), retErrno(eperm); got != want {
				t.Errorf("%s: got %#x, want %#x", name, got, want)
			}
		}
		const high = 7 << 32
		for _, tc := range []struct {
			name string
			args []uint64
			want uint32
		}{
			{"clone3", nil, retAllow},
			{"vmsplice", nil, retErrno(enosys)},
			{"ptrace", nil, retAllow},
			{"process_vm_readv", nil, retAllow},
			{"name_to_handle_at", nil, retAllow},
			{"clone", []uint64{unix.CLONE_VM | unix.CLONE_VFORK | 17}, retAllow},
			{"clone", []uint64{unix.CLONE_NEWUSER | 17}, retErrno(eperm)},
			{"clone", []uint64{high | unix.CLONE_NEWUSER}, retErrno(eperm)},
			{"clone", []uint64{unix.CLONE_NEWNET}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_UNIX}, retAllow},
			{"socket", []uint64{unix.AF_INET}, retAllow},
			{"socket", []uint64{unix.AF_INET6}, retAllow},
			{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}, retAllow},
			{"socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, retAllow},
			{"socket", []uint64{unix.AF_INET6, unix.SOCK_DGRAM, unix.IPPROTO_ICMPV6}, retAllow},
			{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, retAllow},
			{"socket", []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_INET6, unix.SOCK_SEQPACKET, unix.IPPROTO_SCTP}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_INET6, unix.SOCK_STREAM, high | unix.IPPROTO_SCTP}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_INET, 6, unix.IPPROTO_DCCP}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_INET, unix.SOCK_DGRAM, 115}, retErrno(eperm)}, // L2TP
			{"socket", []uint64{unix.AF_AX25, unix.SOCK_STREAM, 0}, retErrno(eperm)},  // between the two
			{"socket", []uint64{8, unix.SOCK_STREAM, 0}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 1}, retAllow},
			{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG}, retAllow},
			{"socket", []uint64{unix.AF_NETLINK}, retAllow},
			{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_KOBJECT_UEVENT}, retAllow},
			{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC}, retErrno(eprotonosupport)},
			{"socket", []uint64{high | unix.AF_NETLINK, unix.SOCK_RAW, high | unix.NETLINK_CRYPTO}, retErrno(eprotonosupport)},
			{"socket", []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 1 << 31}, retErrno(eprotonosupport)},
			{"socket", []uint64{unix.AF_UNSPEC}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_PACKET}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_ALG}, retErrno(eperm)},
			{"socket", []uint64{high | unix.AF_ALG}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_VSOCK}, retErrno(eperm)},
			{"socket", []uint64{unix.AF_XDP}, retErrno(eperm)},
			{"socketpair", []uint64{unix.AF_UNIX}, retAllow},
			{"socketpair", []uint64{unix.AF_TIPC}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.TCGETS}, retAllow},
			{"ioctl", []uint64{0, unix.TIOCSTI}, retErrno(eperm)},
			{"ioctl", []uint64{0, high | unix.TIOCSTI}, retErrno(eperm)},
			{"ioctl", []uint64{0, 0x541c}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.TIOCSETD}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCGIFBR}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCSIFBR}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCADDDLCI}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCGIFVLAN}, retErrno(eperm)},
			{"ioctl", []uint64{0, high | unix.SIOCSIFVLAN}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCBRADDBR}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCBRDELIF}, retErrno(eperm)},
			{"ioctl", []uint64{0, unix.SIOCGIFINDEX}, retAllow},
			{"ioctl", []uint64{0, unix.SIOCETHTOOL}, retAllow},
			{"ioctl", []uint64{0, 0x5000940e}, retErrno(eperm)}, // BTRFS_IOC_SUBVOL_CREATE
			{"ioctl", []uint64{0, high | 0x50009417}, retErrno(eperm)},
			{"ioctl", []uint64{0, 0x9408}, retErrno(eperm)}, // BTRFS_IOC_SYNC
			{"ioctl", []uint64{0, unix.FICLONE}, retAllow},
			{"ioctl", []uint64{0, unix.FICLONERANGE}, retAllow},
			{"ioctl", []uint64{0, unix.FIDEDUPERANGE}, retAllow},
			{"ioctl", []uint64{0, 0x94}, retAllow},
			{"ioctl", []uint64{0, 0x94000000}, retAllow},
			{"ioctl", []uint64{unix.TIOCSTI, 0, unix.TIOCSTI}, retAllow},
			{"personality", []uint64{0xffffffff}, retAllow},
			{"personality", []uint64{8}, retAllow},
			{"personality", []uint64{high | 8}, retErrno(eperm)},
			{"personality", []uint64{0x0400000}, retErrno(eperm)}, // READ_IMPLIES_EXEC
		} {
			if got := ask(tc.name, tc.args...); got != tc.want {
				t.Errorf("%s%#x: got %#x, want %#x", tc.name, tc.args, got, tc.want)
			}
		}
	})
}

// Docker's own evaluation of its list must select what ours selects.
func TestFilterTakesTheRulesThatDockerTakes(t *testing.T) {
	a, err := archOf(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	for name, capabilities := range capabilitySets {
		t.Run(name, func(t *testing.T) {
			want, err := profile.GetDefaultProfile(&specs.Spec{Process: &specs.Process{
				Capabilities: &specs.LinuxCapabilities{Bounding: capabilities}}})
			if err != nil {
				t.Fatal(err)
			}
			var got []specs.LinuxSyscall
			for _, s := range profile.DefaultProfile().Syscalls {
				if applies(s, a.name, capabilities) {
					got = append(got, s.LinuxSyscall)
				}
			}
			if diff := cmp.Diff(got, want.Syscalls); diff != "" {
				t.Errorf("selected rules (-got +want):\n%s", diff)
			}
		})
	}
}

// The kernel runs the filter ahead for each number and remembers those that are allowed
// whatever their arguments: such a call never runs the filter. So no call that programs
// make all the time may look at an argument before it is allowed.
func TestTheKernelRemembersWhatIsCommon(t *testing.T) {
	common := []string{
		"read", "write", "pread64", "pwrite64", "readv", "writev", "openat", "openat2", "close", "newfstatat", "fstat", "statx", "lseek",
		"getdents64", "mmap", "mprotect", "munmap", "brk", "madvise", "execve", "clone3", "exit_group", "wait4", "futex", "ppoll",
		"epoll_pwait", "rt_sigaction", "rt_sigprocmask", "unlinkat", "mkdirat", "renameat2", "fchmodat", "utimensat", "fsync",
		"fdatasync", "fcntl", "dup3", "pipe2", "getpid", "sendto", "recvfrom", "sendmsg", "recvmsg", "connect", "accept4", "sched_yield",
	}
	eachFilter(t, func(t *testing.T, a arch, _ []string, prog []byte) {
		for _, name := range common {
			nr, ok := a.lookup(name)
			if !ok {
				t.Errorf("%s has no number", name)
				continue
			}
			if ret, err := ahead(prog, nr, a.audit); err != nil || ret != retAllow {
				t.Errorf("%s: decided ahead with %#x, %v; want it allowed", name, ret, err)
			}
		}
		for _, name := range []string{"ioctl", "socket", "clone"} {
			if nr, _ := a.lookup(name); nr != 0 {
				if ret, err := ahead(prog, nr, a.audit); err == nil {
					t.Errorf("%s: decided ahead with %#x, want a look at its arguments", name, ret)
				}
			}
		}
	})
}

// The cost of an installation is the number of steps over all numbers.
func TestFilterStaysSmallAndShallow(t *testing.T) {
	eachFilter(t, func(t *testing.T, a arch, _ []string, prog []byte) {
		if got, most := len(prog)/InstructionSize, 220; got > most {
			t.Errorf("%d instructions, want at most %d", got, most)
		}
		deepest, total := 0, 0
		for nr := range uint32(470) {
			_, steps, err := execute(prog, call{nr: nr, arch: a.audit})
			if err != nil {
				t.Fatal(err)
			}
			deepest, total = max(deepest, steps), total+steps
		}
		t.Logf("%d instructions, %d steps over 470 numbers, at most %d", len(prog)/InstructionSize, total, deepest)
		if most := 30; deepest > most {
			t.Errorf("%d steps for one call, want at most %d", deepest, most)
		}
	})
}

// What is told is handed over, and decides nothing else.
func TestFilterHandsOverWhatIsTold(t *testing.T) {
	told := []string{"sched_getaffinity", "sysinfo"}
	for _, goarch := range []string{"amd64", "arm64"} {
		a, err := archOf(goarch)
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Filter(Options{Arch: goarch})
		if err != nil {
			t.Fatal(err)
		}
		prog, err := Filter(Options{Arch: goarch, Told: told})
		if err != nil {
			t.Fatal(err)
		}
		handed := 0
		for nr := uint32(0); nr <= 600; nr++ {
			for _, arg := range []uint64{0, 1, 1 << 32, ^uint64(0)} {
				c := call{nr: nr, arch: a.audit, args: [6]uint64{arg, arg, arg}}
				got, want := run(t, prog, c), run(t, plain, c)
				if slices.ContainsFunc(told, func(name string) bool { n, ok := a.lookup(name); return ok && n == nr }) {
					want = retUserNotif
					handed++
				}
				if got != want {
					t.Errorf("%s: call %d: got %#x, want %#x", goarch, nr, got, want)
				}
			}
		}
		if handed != 4*len(told) {
			t.Errorf("%s: %d calls were looked at", goarch, handed)
		}
	}
}

func TestFilterIsRepeatable(t *testing.T) {
	one, err := Filter(Options{Capabilities: []string{"CAP_CHOWN", "CAP_KILL"}})
	if err != nil {
		t.Fatal(err)
	}
	two, err := Filter(Options{Capabilities: []string{"CAP_KILL", "CAP_CHOWN"}, Arch: runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, two) {
		t.Error("the same capabilities in another order give another program")
	}
}

func TestFilterNamesWhatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{Arch: "riscv64"}, `seccomp: no system call table for "riscv64": want amd64 or arm64`},
		{Options{Capabilities: []string{"chown"}}, `seccomp: capability "chown": want a name such as CAP_CHOWN`},
		{Options{Told: []string{"mount"}}, `seccomp: the call "mount" cannot be handed over: want one that the list allows without conditions`},
		{Options{Told: []string{"socket"}}, `seccomp: the call "socket" cannot be handed over: want one that the list allows without conditions`},
		{Options{Told: []string{"sysinf"}}, `seccomp: the call "sysinf" cannot be handed over: want one that the list allows without conditions`},
		{Options{Capabilities: []string{"CAP_CHOWN "}}, `seccomp: capability "CAP_CHOWN ": want a name such as CAP_CHOWN`},
	} {
		if _, err := Filter(tc.o); err == nil || err.Error() != tc.want {
			t.Errorf("%+v: got %v, want %s", tc.o, err, tc.want)
		}
	}
}

// A stale table would let the filter speak of the wrong calls.
func TestNumbersAreTheKernelsOwn(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	if err != nil {
		t.Skipf("the go command is needed to find x/sys: %v", err)
	}
	for _, goarch := range []string{"amd64", "arm64"} {
		src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "zsysnum_linux_"+goarch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		var want []number
		for _, m := range regexp.MustCompile(`(?m)^\tSYS_([A-Z0-9_]+)\s+= (\d+)$`).FindAllStringSubmatch(string(src), -1) {
			nr, err := strconv.ParseUint(m[2], 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, number{strings.ToLower(m[1]), uint32(nr)})
		}
		a, err := archOf(goarch)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a.numbers, want, cmp.AllowUnexported(number{})); diff != "" {
			t.Errorf("%s: run go generate (-got +want):\n%s", goarch, diff)
		}
	}
}

func BenchmarkFilter(b *testing.B) {
	for b.Loop() {
		if _, err := Filter(Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
