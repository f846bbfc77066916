// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/seccomp/install"
)

// The tests run this binary again as the process to be filtered.
const childVariable = "SANDPIT_SECCOMP_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "attempts":
		childAttempts()
	case "listener":
		childListener()
		os.Exit(0)
	case "asks":
		_, _, _ = unix.Syscall(unix.SYS_SYSINFO, 0, 7, 0)
		os.Exit(0)
	case "i386":
		lockDown()
		fmt.Fprintln(os.Stderr, syscall.Exec(os.Args[1], os.Args[1:], nil))
		os.Exit(3)
	}
}

const bad = ^uintptr(0) - 4095 // never a pointer, never a descriptor

type attempt struct {
	name string
	nr   uintptr
	args [3]uintptr
	// want is the errno under the filter. For a refused call the arguments are
	// such that the kernel itself gives root another answer, and does nothing.
	want syscall.Errno
}

func attempts() []attempt {
	const eperm, enosys = unix.EPERM, unix.ENOSYS
	out := []attempt{
		{"getpid", unix.SYS_GETPID, [3]uintptr{}, 0},
		{"ioctl TCGETS", unix.SYS_IOCTL, [3]uintptr{bad, unix.TCGETS}, unix.EBADF},
		{"ptrace", unix.SYS_PTRACE, [3]uintptr{99999, 0, 0}, unix.ESRCH},
		{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, [3]uintptr{bad, bad, bad}, unix.EFAULT},
		{"seccomp", unix.SYS_SECCOMP, [3]uintptr{99, 0, 0}, unix.EINVAL},
		{"clone without namespaces", unix.SYS_CLONE, [3]uintptr{unix.CLONE_SIGHAND, 0, 0}, unix.EINVAL},

		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [3]uintptr{1, bad}, eperm},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, [3]uintptr{bad}, eperm},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, [3]uintptr{bad}, eperm},
		{"add_key", unix.SYS_ADD_KEY, [3]uintptr{bad, bad}, eperm},
		{"request_key", unix.SYS_REQUEST_KEY, [3]uintptr{bad, bad}, eperm},
		{"keyctl", unix.SYS_KEYCTL, [3]uintptr{9999}, eperm},
		{"bpf", unix.SYS_BPF, [3]uintptr{9999, bad, 8}, eperm},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uintptr{bad}, eperm},
		{"userfaultfd", unix.SYS_USERFAULTFD, [3]uintptr{bad}, eperm},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [3]uintptr{bad, bad}, eperm},
		{"reboot", unix.SYS_REBOOT, [3]uintptr{1, 2, 3}, eperm},
		{"swapon", unix.SYS_SWAPON, [3]uintptr{bad}, eperm},
		{"acct", unix.SYS_ACCT, [3]uintptr{bad}, eperm},
		{"mount", unix.SYS_MOUNT, [3]uintptr{bad, bad, bad}, eperm},
		{"umount2", unix.SYS_UMOUNT2, [3]uintptr{bad}, eperm},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [3]uintptr{bad, bad}, eperm},
		{"fsopen", unix.SYS_FSOPEN, [3]uintptr{bad}, eperm},
		{"open_tree", unix.SYS_OPEN_TREE, [3]uintptr{bad, bad}, eperm},
		{"move_mount", unix.SYS_MOVE_MOUNT, [3]uintptr{bad, bad, bad}, eperm},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, [3]uintptr{bad, bad, bad}, eperm},
		{"setns", unix.SYS_SETNS, [3]uintptr{bad}, eperm},
		{"unshare", unix.SYS_UNSHARE, [3]uintptr{0}, eperm},
		{"clone with a user namespace", unix.SYS_CLONE, [3]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS}, eperm},
		{"clone with a user namespace, upper half set", unix.SYS_CLONE, [3]uintptr{1<<32 | unix.CLONE_NEWUSER | unix.CLONE_FS}, eperm},
		{"socket AF_PACKET", unix.SYS_SOCKET, [3]uintptr{unix.AF_PACKET, 99}, eperm},
		{"socket AF_ALG", unix.SYS_SOCKET, [3]uintptr{unix.AF_ALG, 99}, eperm},
		{"socket AF_ALG, upper half set", unix.SYS_SOCKET, [3]uintptr{1<<32 | unix.AF_ALG, 99}, eperm},
		{"socket AF_VSOCK", unix.SYS_SOCKET, [3]uintptr{unix.AF_VSOCK, 99}, eperm},
		{"socket of SCTP", unix.SYS_SOCKET, [3]uintptr{unix.AF_INET, 99, unix.IPPROTO_SCTP}, eperm},
		{"socket of SCTP, upper half set", unix.SYS_SOCKET, [3]uintptr{unix.AF_INET6, 99, 1<<32 | unix.IPPROTO_SCTP}, eperm},
		{"socket of generic netlink", unix.SYS_SOCKET, [3]uintptr{unix.AF_NETLINK, 99, unix.NETLINK_GENERIC}, unix.EPROTONOSUPPORT},
		{"socketpair AF_INET", unix.SYS_SOCKETPAIR, [3]uintptr{unix.AF_INET, 1, 0}, eperm},
		{"ioctl TIOCSTI", unix.SYS_IOCTL, [3]uintptr{bad, unix.TIOCSTI}, eperm},
		{"ioctl TIOCSTI, upper half set", unix.SYS_IOCTL, [3]uintptr{bad, 1<<32 | unix.TIOCSTI}, eperm},
		{"ioctl TIOCLINUX", unix.SYS_IOCTL, [3]uintptr{bad, tioclinux}, eperm},
		{"ioctl TIOCSETD", unix.SYS_IOCTL, [3]uintptr{bad, tiocsetd}, eperm},
		{"ioctl of bridges", unix.SYS_IOCTL, [3]uintptr{bad, unix.SIOCGIFBR}, eperm},
		{"ioctl of VLANs, upper half set", unix.SYS_IOCTL, [3]uintptr{bad, 1<<32 | unix.SIOCGIFVLAN}, eperm},
		{"ioctl of btrfs", unix.SYS_IOCTL, [3]uintptr{bad, 0x5000940e}, eperm},
		{"chroot without the capability", unix.SYS_CHROOT, [3]uintptr{bad}, eperm},
		{"vmsplice", unix.SYS_VMSPLICE, [3]uintptr{bad}, enosys},
	}
	return out
}

// lockDown puts the filter on this thread only.
func lockDown() {
	runtime.LockOSThread()
	prog, err := Filter(Options{})
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = install.Install(prog)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func childAttempts() {
	free, locked, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { // a thread that the filter must not reach
		runtime.LockOSThread()
		defer close(done)
		close(free)
		<-locked
		for _, a := range attempts() {
			_, _, errno := unix.RawSyscall(a.nr, a.args[0], a.args[1], a.args[2])
			fmt.Printf("free|%s|%d\n", a.name, errno)
		}
	}()
	<-free
	lockDown()
	for _, a := range attempts() {
		_, _, errno := unix.RawSyscall(a.nr, a.args[0], a.args[1], a.args[2])
		fmt.Printf("filtered|%s|%d\n", a.name, errno)
	}
	_, _, errno := unix.RawSyscall(1<<30|unix.SYS_GETPID, 0, 0, 0)
	fmt.Printf("filtered|x32 getpid|%d\n", errno)
	// Starting programs must go on working, by way of clone.
	if err := exec.Command("/bin/true").Run(); err == nil {
		fmt.Println("filtered|exec|0")
	}
	close(locked)
	<-done
}

// childListener has a thread's calls answered, and prints how that goes.
func childListener() {
	runtime.LockOSThread()
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(2)
		}
	}
	prog, err := Filter(Options{Told: []string{"sysinfo"}})
	fail(err)
	fail(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	l, err := install.Listen(prog)
	fail(err)
	ended := make(chan error)
	answer := func(how func(c install.Call) error) {
		go func() {
			c, err := l.Receive()
			if err == nil && (c.Number != unix.SYS_SYSINFO || c.Args[1] != 7) {
				err = fmt.Errorf("the call is %+v", c)
			}
			if err == nil {
				err = how(c)
			}
			ended <- err
		}()
	}
	var info unix.Sysinfo_t
	ask := func() unix.Errno {
		_, _, errno := unix.Syscall(unix.SYS_SYSINFO, uintptr(unsafe.Pointer(&info)), 7, 0)
		return errno
	}

	answer(func(c install.Call) error {
		m, err := l.Memory(c)
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }()
		if _, err := m.WriteAt([]byte{42}, int64(c.Args[0])); err != nil {
			return err
		}
		return l.Return(c, 0, 0)
	})
	errno := ask()
	fail(<-ended)
	fmt.Println("answered:", errno, info.Uptime, info.Totalram)

	answer(func(c install.Call) error { return l.Return(c, 0, unix.EIO) })
	errno = ask()
	fail(<-ended)
	fmt.Println("refused:", errno)

	answer(func(c install.Call) error { return l.Continue(c) })
	errno = ask()
	fail(<-ended)
	fmt.Println("continued:", errno, info.Totalram > 1<<20)

	// Who asks is killed before there is an answer.
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{childVariable + "=asks"}
	fail(cmd.Start())
	gone := make(chan struct{})
	go func() {
		c, err := l.Receive()
		if err == nil {
			err = cmd.Process.Kill()
		}
		if err == nil {
			<-gone
			if m, failed := l.Memory(c); failed == nil {
				_ = m.Close()
				err = errors.New("the memory of who is gone was opened")
			}
		}
		if err == nil {
			err = l.Return(c, 0, 0)
		}
		ended <- err
	}()
	fmt.Println("killed:", cmd.Wait())
	close(gone)
	fail(<-ended)

	// A second one is not to be had: those calls pass, or are the first one's.
	more, err := Filter(Options{Told: []string{"getcpu"}})
	fail(err)
	second, err := install.Listen(more)
	fail(err)
	_, _, errno = unix.RawSyscall(unix.SYS_GETCPU, 0, 0, 0)
	fmt.Println("second:", second == nil, errno)
}

func child(t *testing.T, mode string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = []string{childVariable + "=" + mode}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	return string(out), err
}

func TestInstalledFilterAnswersWithTheRightErrno(t *testing.T) {
	out, err := child(t, "attempts")
	if err != nil {
		t.Fatalf("the child: %v\n%s", err, out)
	}
	got := map[string]syscall.Errno{}
	for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
		i := strings.LastIndexByte(s.Text(), '|')
		var errno int
		if _, err := fmt.Sscan(s.Text()[i+1:], &errno); err != nil {
			t.Fatalf("%q: %v", s.Text(), err)
		}
		got[s.Text()[:i]] = syscall.Errno(errno)
	}
	for _, a := range attempts() {
		filtered, ok := got["filtered|"+a.name]
		if !ok {
			t.Errorf("%s: not tried", a.name)
		} else if filtered != a.want {
			t.Errorf("%s: got %q, want %q", a.name, filtered, a.want)
		}
		free, ok := got["free|"+a.name]
		if !ok {
			t.Errorf("%s: not tried on the free thread", a.name)
		}
		refused := a.want == unix.EPERM || a.want == unix.ENOSYS
		if refused && free == a.want && os.Getuid() == 0 {
			t.Errorf("%s: a thread without the filter got %q too: the attempt proves nothing, or the filter spread", a.name, free)
		}
	}
	if runtime.GOARCH == "amd64" && got["filtered|x32 getpid"] != unix.ENOSYS {
		t.Errorf("x32 getpid: got %q, want %q", got["filtered|x32 getpid"], unix.ENOSYS)
	}
	if _, ok := got["filtered|exec"]; !ok {
		t.Error("a filtered thread could not start a program")
	}
}

func TestAListenerAnswersTheCallsThatAreHandedOver(t *testing.T) {
	out, err := child(t, "listener")
	if err != nil {
		t.Fatalf("the child: %v\n%s", err, out)
	}
	const want = `answered: errno 0 42 0
refused: input/output error
continued: errno 0 true
killed: signal: killed
second: true errno 0
`
	if out != want {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
}

// elf386 is a 32-bit program that calls getpid and exits with 0.
func elf386() []byte {
	code := []byte{
		0xb8, 20, 0, 0, 0, 0xcd, 0x80, // eax = getpid; int 0x80
		0x31, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80, // ebx = 0; eax = exit; int 0x80
	}
	const base, headers = 0x08048000, 52 + 32
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x01\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2) // ET_EXEC
	b = le.AppendUint16(b, 3) // EM_386
	for _, v := range []uint32{1, base + headers, 52, 0, 0} {
		b = le.AppendUint32(b, v)
	}
	for _, v := range []uint16{52, 32, 1, 0, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	size := uint32(headers + len(code))
	for _, v := range []uint32{1, 0, base, base, size, size, 5, 0x1000} {
		b = le.AppendUint32(b, v)
	}
	return append(b, code...)
}

func TestInstalledFilterKillsThirtyTwoBitPrograms(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the program is for x86")
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, elf386(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(path).Run(); err != nil {
		t.Skipf("this kernel runs no 32-bit programs: %v", err)
	}
	_, err := child(t, "i386", path)
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatalf("got %v, want a death by signal", err)
	}
	if got := exit.Sys().(syscall.WaitStatus).Signal(); got != unix.SIGSYS {
		t.Errorf("got signal %v, want %v", got, unix.SIGSYS)
	}
}

func TestInstallRefusesWhatIsNoProgram(t *testing.T) {
	for _, n := range []int{0, 7, 12, 8 * 4097} {
		if err := install.Install(make([]byte, n)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("program of %d bytes", n)) {
			t.Errorf("%d bytes: got %v", n, err)
		}
	}
	// The kernel's own check: a program must end in a return.
	load := instruction{code: codeLoad, k: offsetNr}
	prog := (&assembler{reversed: []instruction{load}}).bytes()
	if err := install.Install(prog); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EACCES) {
		t.Errorf("a program without an end: got %v, want EINVAL", err)
	}
	if got, want := unsafe.Sizeof(unix.SockFilter{}), uintptr(InstructionSize); got != want {
		t.Errorf("struct sock_filter has %d bytes, want %d", got, want)
	}
}

// Each installation is on a thread of its own, as filters stack.
func BenchmarkInstall(b *testing.B) {
	prog, err := Filter(Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(prog)/InstructionSize), "instructions")
	b.StopTimer()
	for range b.N {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends here
			err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			if err == nil {
				b.StartTimer()
				err = install.Install(prog)
				b.StopTimer()
			}
			done <- err
		}()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
