// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/runtime/native/spawn"
)

// masked are kernel files that tell of the host, or reach into it. They read as
// empty. Those that this kernel lacks are passed over.
var masked = [...]string{
	"/proc/cmdline", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys",
	"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/partitions", "/proc/sched_debug",
	"/proc/slabinfo", "/proc/softirqs", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
}

// maskedDirs are directories of the same kind.
var maskedDirs = [...]string{"/proc/acpi", "/proc/asound", "/proc/scsi"}

// readOnly are kernel files and directories that commands may read and never
// write, also where a namespace of theirs would let them.
var readOnly = [...]string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr"}

// writable are the directories that the user's view can write. Each is a mount of
// its own there, so renames between them are EXDEV.
var writable = [...]string{"workspace", "artifacts", "home", "tmp", "var/tmp"}

const shmSize = "64m"

// Parameters of the tape.
const (
	paramRoot = iota // descriptor of the detached overlay
	paramDev         // descriptor of the detached, read-only /dev
	paramName        // the host name's bytes
	paramNameLen
)

// Tape makes insides. It is safe for concurrent use.
type Tape struct {
	tape spawn.Tape
	view spawn.Arg // the user's mount namespace

	// What the calls point to.
	point    unix.OpenHow
	frozen   unix.MountAttr
	readOnly unix.MountAttr
}

// New writes the tape.
func New() *Tape {
	t := &Tape{
		// What is at a mount point may have been put there by hostile code: links
		// are not followed.
		point: unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		},
		frozen:   unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC},
		readOnly: unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY},
	}
	t.root()
	t.host()
	t.masks()
	t.userView()
	return t
}

// Inside is what was made: the caller closes it once the agent has the view.
type Inside struct {
	View *os.File // mount namespace of the user's commands
	rest *spawn.Played
}

// Close closes what is left open.
func (in *Inside) Close() error {
	in.rest.Close()
	return in.View.Close()
}

// Inside makes the inside of the sandbox whose process 1 pidfd is open on. root and
// dev are detached mounts; they stay the caller's. It blocks its thread for about 1 ms.
func (t *Tape) Inside(pidfd, root, dev *os.File, hostname string) (*Inside, error) {
	name := append([]byte(hostname), 0)
	played, err := t.tape.Play(pidfd, root.Fd(), dev.Fd(), uintptr(unsafe.Pointer(unsafe.SliceData(name))), uintptr(len(hostname)))
	runtime.KeepAlive(root)
	runtime.KeepAlive(dev)
	runtime.KeepAlive(name)
	if err != nil {
		return nil, err
	}
	return &Inside{View: played.Take(t.view, "view"), rest: played}, nil
}

// option is one parameter of a new file system; without a value it is a flag.
type option struct{ key, value string }

// fresh makes a detached mount of a new file system.
func (t *Tape) fresh(fstype string, attrs int, options ...option) spawn.Arg {
	p := &t.tape
	what := "make a " + fstype
	ctx := p.Open(what, spawn.Never, unix.SYS_FSOPEN, p.Text(fstype), spawn.Int(unix.FSOPEN_CLOEXEC))
	for _, o := range options {
		if o.value == "" {
			p.Do(what+": set "+o.key, spawn.Never, unix.SYS_FSCONFIG, ctx, spawn.Int(unix.FSCONFIG_SET_FLAG), p.Text(o.key))
			continue
		}
		p.Do(what+": set "+o.key, spawn.Never, unix.SYS_FSCONFIG, ctx, spawn.Int(unix.FSCONFIG_SET_STRING), p.Text(o.key), p.Text(o.value))
	}
	p.Do(what+": create", spawn.Never, unix.SYS_FSCONFIG, ctx, spawn.Int(unix.FSCONFIG_CMD_CREATE))
	return p.Open(what+": mount", spawn.Never, unix.SYS_FSMOUNT, ctx, spawn.Int(unix.FSMOUNT_CLOEXEC), spawn.Int(attrs))
}

// open opens the mount point at path below root.
func (t *Tape) open(what string, tolerate unix.Errno, root spawn.Arg, path string) spawn.Arg {
	return t.tape.Open(what, tolerate, unix.SYS_OPENAT2, root, t.tape.Text(path), spawn.Pointer(unsafe.Pointer(&t.point)), spawn.Int(unsafe.Sizeof(t.point)))
}

// move attaches a detached mount onto what a descriptor is open on.
func (t *Tape) move(what string, m, onto spawn.Arg) {
	none := t.tape.Text("")
	t.tape.Do(what, spawn.Never, unix.SYS_MOVE_MOUNT, m, none, onto, none, spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// mount is mount(2), the old call: one where the new ones need three.
func (t *Tape) mount(what string, tolerate unix.Errno, source, target, fstype string, flags uintptr, data string) {
	p := &t.tape
	p.Do(what, tolerate, unix.SYS_MOUNT, p.Text(source), p.Text(target), p.Text(fstype), spawn.Int(flags), p.Text(data))
}

// root makes the overlay the root, furnished.
func (t *Tape) root() {
	p := &t.tape
	t.mount("make mounts private", spawn.Never, "", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	const quiet = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	proc := t.fresh("proc", quiet|unix.MOUNT_ATTR_NODEV)
	sys := t.fresh("tmpfs", quiet|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_RDONLY, option{"mode", "0555"}, option{"size", "4k"})
	pts := t.fresh("devpts", quiet, option{"newinstance", ""}, option{"ptmxmode", "0666"}, option{"mode", "0620"}, option{"max", "64"})
	shm := t.fresh("tmpfs", quiet|unix.MOUNT_ATTR_NODEV, option{"mode", "1777"}, option{"size", shmSize})

	// The overlay is attached over the host's root, which it replaces.
	root := spawn.Param(paramRoot)
	p.Do("attach the root", spawn.Never, unix.SYS_MOVE_MOUNT, root, p.Text(""), spawn.At(), p.Text("/"), spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
	for _, m := range []struct {
		mount spawn.Arg
		at    string
	}{{spawn.Param(paramDev), "dev"}, {pts, "dev/pts"}, {shm, "dev/shm"}, {proc, "proc"}, {sys, "sys"}} {
		// An image need not have it, and the sandbox's root may have removed it.
		p.Do("make /"+m.at, spawn.Any, unix.SYS_MKDIRAT, root, p.Text(m.at), spawn.Int(0o755))
		at := t.open("the image's /"+m.at+" cannot be a mount point", spawn.Never, root, m.at)
		t.move("mount /"+m.at, m.mount, at)
	}
	dot := p.Text(".")
	p.Do("enter the root", spawn.Never, unix.SYS_FCHDIR, root)
	p.Do("pivot_root", spawn.Never, unix.SYS_PIVOT_ROOT, dot, dot)
	p.Do("let go of the host's root", spawn.Never, unix.SYS_UMOUNT2, dot, spawn.Int(unix.MNT_DETACH))
	p.Do("enter the new root", spawn.Never, unix.SYS_CHDIR, p.Text("/"))
}

// host sets what makes it a host of its own.
func (t *Tape) host() {
	p := &t.tape
	p.Do("set the host name", spawn.Never, unix.SYS_SETHOSTNAME, spawn.Param(paramName), spawn.Param(paramNameLen))
	// Nothing inside makes a user namespace, by whatever system call. A filter can
	// tell clone's flags and not those of clone3, which are in memory; this limit is
	// the kernel's own, and covers both.
	const what = "forbid user namespaces"
	file := p.Open(what, spawn.Never, unix.SYS_OPENAT, spawn.At(), p.Text("/proc/sys/user/max_user_namespaces"), spawn.Int(unix.O_WRONLY|unix.O_CLOEXEC))
	p.Do(what, spawn.Never, unix.SYS_WRITE, file, p.Text("0"), spawn.Int(1))
}

// masks hides and freezes kernel files. The paths are on our own procfs.
func (t *Tape) masks() {
	for _, path := range masked {
		t.mount("mask "+path, unix.ENOENT, "/dev/null", path, "", unix.MS_BIND, "")
	}
	for _, path := range maskedDirs {
		t.mount("mask "+path, unix.ENOENT, "tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=555")
	}
	p := &t.tape
	for _, path := range readOnly {
		// A clone of the mount is attached onto itself; where there is no such file, neither happens.
		clone := p.Open("make "+path+" read-only: clone", unix.ENOENT, unix.SYS_OPEN_TREE, spawn.At(), p.Text(path), spawn.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC))
		p.Do("make "+path+" read-only", spawn.Never, unix.SYS_MOUNT_SETATTR, clone, p.Text(""), spawn.Int(unix.AT_EMPTY_PATH),
			spawn.Pointer(unsafe.Pointer(&t.frozen)), spawn.Int(unsafe.Sizeof(t.frozen)))
		p.Do("make "+path+" read-only: attach", spawn.Never, unix.SYS_MOVE_MOUNT, clone, p.Text(""), spawn.At(), p.Text(path), spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
	}
}

// userView makes the mount namespace of the user's commands, last of all.
func (t *Tape) userView() {
	p := &t.tape
	// Mounts that the agent makes later reach the user's view too, and nothing
	// goes the other way.
	t.mount("share mounts with the user's view", spawn.Never, "", "/", "", unix.MS_SHARED, "")
	p.Do("the user's view: unshare mounts", spawn.Never, unix.SYS_UNSHARE, spawn.Int(unix.CLONE_NEWNS))
	t.mount("the user's view: follow the agent's mounts", spawn.Never, "", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	root := p.Open("the user's view: open its root", spawn.Never, unix.SYS_OPENAT, spawn.At(), p.Text("/"), spawn.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC))
	none := p.Text("")
	type place struct{ tree, at spawn.Arg }
	var places [len(writable)]place
	for i, path := range writable {
		// Hostile code as root may have replaced it: then it stays read-only.
		at := t.open("the user's /"+path, spawn.Any, root, path)
		tree := p.Open("the user's /"+path+": clone", spawn.Never, unix.SYS_OPEN_TREE, at, none,
			spawn.Int(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH))
		places[i] = place{tree, at}
	}
	p.Do("the user's view: make its root read-only", spawn.Never, unix.SYS_MOUNT_SETATTR, root, none, spawn.Int(unix.AT_EMPTY_PATH),
		spawn.Pointer(unsafe.Pointer(&t.readOnly)), spawn.Int(unsafe.Sizeof(t.readOnly)))
	for i, pl := range places {
		t.move("the user's /"+writable[i]+": attach", pl.tree, pl.at)
	}
	t.view = p.Open("the user's view: keep it", spawn.Never, unix.SYS_OPENAT, spawn.At(), p.Text("/proc/self/ns/mnt"), spawn.Int(unix.O_RDONLY|unix.O_CLOEXEC))
}
