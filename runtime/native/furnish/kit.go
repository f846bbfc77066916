// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"errors"
	"os"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/sudo"
	"sandpit.dev/fault"
	"sandpit.dev/linux/mount"
	"sandpit.dev/linux/spawn"
)

// Kit is what a sandbox has of its own and needs nothing of the sandbox for but its user
// namespace, so that it can be made ahead.
type Kit struct {
	Net *os.File // network namespace with loopback up and nothing else
	Dev *os.File // detached /dev, complete but for the next two
	Pts *os.File // detached terminals and shared memory; nil where they are in Dev already
	Shm *os.File
	// Program is sudo's, detached, where it is not in Dev already, and Sudo the listening socket beside it.
	Program *os.File
	Sudo    *os.File

	Sys *os.File // detached: empty files for the agent to write, see [boot.Files]
}

// Close lets go of what is left of it.
func (k *Kit) Close() error {
	for _, f := range []**os.File{&k.Net, &k.Dev, &k.Pts, &k.Shm, &k.Program, &k.Sudo, &k.Sys} {
		if *f != nil {
			_ = (*f).Close()
			*f = nil
		}
	}
	return nil
}

// Kits makes them. It is safe for concurrent use.
type Kits struct {
	older         *older // nil from Linux 6.15 on
	program       *program
	script        spawn.Script
	net, pts, shm spawn.Arg
	sys           spawn.Arg
	loopback      ifreq
}

// ifreq is the kernel's struct ifreq with flags.
type ifreq struct {
	name  [unix.IFNAMSIZ]byte
	flags uint16
	_     [22]byte
}

// socketBuffers are the least, the usual and the most bytes that a connection of TCP holds,
// each way, unless a program asks for more. What is not read stays in the usual ones; both are
// enough for a loopback at full speed.
var socketBuffers = [...]struct{ file, bytes string }{
	{"/proc/sys/net/ipv4/tcp_rmem", "4096 16384 262144"},
	{"/proc/sys/net/ipv4/tcp_wmem", "4096 16384 262144"},
}

// NewKits writes the script, for kernels before Linux 6.15 where old is set. Where small is,
// buffers of sockets are bounded: no limit of memory counts them there. program is the path of the agent's. Children of
// m run the script.
func NewKits(program string, old, small bool, m spawn.Method) (_ *Kits, err error) {
	k := &Kits{script: spawn.Script{Method: m}, loopback: ifreq{name: [unix.IFNAMSIZ]byte{'l', 'o'}, flags: unix.IFF_UP | unix.IFF_RUNNING}}
	if k.program, err = openProgram(program, old); err != nil {
		return nil, err
	}
	if old {
		if k.older, err = openOlder(); err != nil {
			return nil, errors.Join(err, k.program.Close())
		}
	}
	p := &k.script
	// Nothing inside makes a user namespace, by whatever system call. A filter can
	// tell clone's flags and not those of clone3, which are in memory; this limit is
	// the kernel's own, and covers both. It is one of the user namespace, for good.
	const what = "forbid user namespaces"
	file := p.Open(what, spawn.Never, unix.SYS_OPENAT, spawn.At(), p.Text("/proc/sys/user/max_user_namespaces"), spawn.Int(unix.O_WRONLY|unix.O_CLOEXEC))
	p.Do(what, spawn.Never, unix.SYS_WRITE, file, p.Text("0"), spawn.Int(1))
	// In a mount namespace of the user namespace's own the file systems are its own too.
	p.Do("make a network namespace", spawn.Never, unix.SYS_UNSHARE, spawn.Int(unix.CLONE_NEWNET|unix.CLONE_NEWNS))
	if small {
		for _, b := range socketBuffers {
			const what = "bound the buffers of sockets"
			file := p.Open(what, spawn.Never, unix.SYS_OPENAT, spawn.At(), p.Text(b.file), spawn.Int(unix.O_WRONLY|unix.O_CLOEXEC))
			p.Do(what, spawn.Never, unix.SYS_WRITE, file, p.Text(b.bytes), spawn.Int(len(b.bytes)))
		}
	}
	sock := p.Open("bring up loopback: socket", spawn.Never, unix.SYS_SOCKET, spawn.Int(unix.AF_INET), spawn.Int(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), spawn.Int(0))
	p.Do("bring up loopback", spawn.Never, unix.SYS_IOCTL, sock, spawn.Int(unix.SIOCSIFFLAGS), spawn.Pointer(unsafe.Pointer(&k.loopback)))
	k.net = k.older.own(p, "keep the network namespace", getNetNS, netNS)
	k.pts = fresh(p, "devpts", quiet, option{"newinstance", ""}, option{"ptmxmode", "0666"}, option{"mode", "0620"}, option{"max", "64"})
	k.shm = fresh(p, "tmpfs", quiet|unix.MOUNT_ATTR_NODEV, option{"mode", "1777"}, option{"size", shmSize})
	k.sys = fresh(p, "tmpfs", quiet|unix.MOUNT_ATTR_NODEV, option{"mode", "0555"}, option{"size", "64k"})
	facts(p, k.sys)
	return k, nil
}

// Close lets go of what they are made with.
func (k *Kits) Close() error { return errors.Join(k.program.Close(), k.older.Close()) }

// Make makes a kit for the user namespace. mounts is a mount namespace of the host's with
// a /proc and little else. It blocks its thread for about a millisecond, as long as all else
// of a sandbox's namespaces.
func (k *Kits) Make(userns, mounts *os.File) (_ *Kit, err error) {
	opened, err := k.script.RunAs(userns, mounts)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	kit := &Kit{Net: opened.Take(k.net, "netns"), Sys: opened.Take(k.sys, "sys"), Pts: opened.Take(k.pts, "devpts"), Shm: opened.Take(k.shm, "shm")}
	defer func() {
		if err != nil {
			_ = kit.Close()
		}
	}()
	if kit.Dev, kit.Sudo, err = makeDev(); err != nil {
		return kit, err
	}
	if kit.Program, err = k.program.clone(); err != nil || k.older != nil {
		return kit, err
	}
	// One tree, that is attached in one step.
	pts, shm, program := kit.Pts, kit.Shm, kit.Program
	kit.Pts, kit.Shm, kit.Program = nil, nil, nil
	defer func() { _, _, _ = pts.Close(), shm.Close(), program.Close() }()
	for _, m := range []struct {
		mount *os.File
		at    string
	}{{pts, "pts"}, {shm, "shm"}, {program, programAt}} {
		if err := unix.MoveMount(int(m.mount.Fd()), "", int(kit.Dev.Fd()), m.at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return nil, &os.PathError{Op: "move_mount", Path: "/dev/" + m.at, Err: err}
		}
	}
	return kit, nil
}

// programAt and socketAt are where sudo's program and its socket are, in /dev.
var (
	programAt = strings.TrimPrefix(sudo.Program, "/dev/")
	socketAt  = strings.TrimPrefix(sudo.Socket, "/dev/")
)

const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC

// makeDev makes a sandbox's /dev: read-only, on a file system of its own, since a
// lock or a watch on a shared one would reach the neighbours. It comes with the listening socket in it, which no other
// sandbox has a way to.
func makeDev() (_, _ *os.File, err error) {
	dev, err := mount.New("tmpfs", quiet|unix.MOUNT_ATTR_NOATIME, mount.Param{Key: "mode", Value: "0755"}, mount.Param{Key: "size", Value: "64k"})
	if err != nil {
		return nil, nil, fault.Wrap(fault.Unsupported, err, "the host cannot mount a tmpfs")
	}
	defer func() {
		if err != nil {
			_ = dev.Close()
		}
	}()
	fd := int(dev.Fd())
	for _, n := range []struct {
		name         string
		major, minor uint32
	}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0}} {
		if err := unix.Mknodat(fd, n.name, unix.S_IFCHR|0o666, int(unix.Mkdev(n.major, n.minor))); err != nil {
			return nil, nil, fault.Wrap(fault.Unsupported, err, "the device node %s cannot be made", n.name).
				WithRemedy("let the server have CAP_MKNOD")
		}
		if err := unix.Fchmodat(fd, n.name, 0o666, 0); err != nil { // whatever the umask is
			return nil, nil, err
		}
	}
	for _, l := range [][2]string{
		{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
		{"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"},
	} {
		if err := unix.Symlinkat(l[0], fd, l[1]); err != nil {
			return nil, nil, err
		}
	}
	for _, name := range []string{"pts", "shm", path.Dir(socketAt), path.Dir(programAt)} {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			return nil, nil, err
		}
		if err := unix.Fchmodat(fd, name, 0o755, 0); err != nil {
			return nil, nil, err
		}
	}
	if err := unix.Mknodat(fd, programAt, unix.S_IFREG, 0); err != nil {
		return nil, nil, &os.PathError{Op: "mknod", Path: sudo.Program, Err: err}
	}
	asked, err := listenAt(fd, socketAt)
	if err != nil {
		return nil, nil, err
	}
	if err := mount.SetAttr(dev, unix.MOUNT_ATTR_RDONLY); err != nil {
		_ = asked.Close()
		return nil, nil, err
	}
	return dev, asked, nil
}

// listenAt makes a listening socket that everybody who finds it may connect to.
func listenAt(dir int, name string) (*os.File, error) {
	const backlog = 512
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), name)
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name})
	if err == nil {
		err = unix.Fchmodat(dir, name, 0o666, 0)
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err != nil {
		_ = f.Close()
		return nil, &os.PathError{Op: "listen", Path: name, Err: err}
	}
	return f, nil
}
