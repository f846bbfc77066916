// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/sudo"
	"sandpit.dev/fault"
	"sandpit.dev/linux/spawn"
)

// masked are kernel files that tell of the host, or reach into it. They read as
// empty. Those that this kernel lacks are passed over.
var masked = [...]string{
	"/proc/cgroups", "/proc/cmdline", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/key-users", "/proc/keys",
	"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/latency_stats", "/proc/locks", "/proc/partitions", "/proc/sched_debug",
	"/proc/slabinfo", "/proc/softirqs", "/proc/timer_list", "/proc/timer_stats", "/proc/vmallocinfo",
}

// maskedDirs are directories of the same kind.
var maskedDirs = [...]string{"/proc/acpi", "/proc/asound", "/proc/bus", "/proc/fs", "/proc/scsi"}

// readOnly are kernel files and directories that commands may read and never
// write, also where a namespace of theirs would let them.
var readOnly = [...]string{"/sys", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/mtrr"}

// writable are the directories that the user's view can write. Each is a mount of
// its own there, so renames between them are EXDEV.
var writable = [...]string{"workspace", "artifacts", "home", "tmp", "var/tmp"}

const shmSize = "64m"

// Parameters of the script.
const (
	paramRoot = iota // descriptor of the detached overlay
	paramDev         // those of a kit
	paramSys
	paramName // the host name's bytes
	paramNameLen
	paramPts // of an older kernel's kit
	paramShm
	paramProgram
)

// Script makes insides. It is safe for concurrent use.
type Script struct {
	older  *older // nil from Linux 6.15 on
	birth  spawn.Script
	script spawn.Script
	view   spawn.Arg // the user's mount namespace

	// What the calls point to.
	point    unix.OpenHow
	file     unix.OpenHow
	frozen   unix.MountAttr
	readOnly unix.MountAttr
}

// New writes the script, for kernels before Linux 6.15 where old is set. Children of m run it.
func New(old bool, m spawn.Method) (_ *Script, err error) {
	t := &Script{
		script: spawn.Script{Method: m},
		// What is at a mount point may have been put there by hostile code: links
		// are not followed.
		point: unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		},
		file: unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		},
		frozen:   unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC},
		readOnly: unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY},
	}
	if old {
		if t.older, err = openOlder(); err != nil {
			return nil, err
		}
	}
	t.born()
	t.root()
	t.host()
	t.masks()
	t.userView()
	return t, nil
}

// Close lets go of what the script is run with.
func (t *Script) Close() error { return t.older.Close() }

// Inside is what was made: the caller closes it once the agent has the view.
type Inside struct {
	View *os.File // mount namespace of the user's commands
	rest *spawn.Opened
}

// Close closes what is left open.
func (in *Inside) Close() error {
	in.rest.Close()
	return in.View.Close()
}

// Birth is the script that process 1 runs before it executes the agent, see
// [spawn.Process].
func (t *Script) Birth() *spawn.Script { return &t.birth }

// Inside makes the inside of the sandbox whose process 1 pidfd is open on, after it
// ran Birth. root is a detached mount, as those of kit are; they stay the caller's.
// It blocks its thread for about 1 ms. A root in which a mount point is no directory is fault.Conflict.
func (t *Script) Inside(pidfd, root *os.File, kit *Kit, hostname string) (*Inside, error) {
	name := append([]byte(hostname), 0)
	pts, shm, program := uintptr(0), uintptr(0), uintptr(0)
	if t.older != nil {
		pts, shm, program = kit.Pts.Fd(), kit.Shm.Fd(), kit.Program.Fd()
	}
	opened, err := t.script.Run(pidfd, root.Fd(), kit.Dev.Fd(), kit.Sys.Fd(), uintptr(unsafe.Pointer(unsafe.SliceData(name))), uintptr(len(hostname)), pts, shm, program)
	runtime.KeepAlive(root)
	runtime.KeepAlive(kit)
	runtime.KeepAlive(name)
	if err != nil {
		return nil, blockedAs(err)
	}
	return &Inside{View: opened.Take(t.view, "view"), rest: opened}, nil
}

// option is one parameter of a new file system; without a value it is a flag.
type option struct{ key, value string }

// fresh makes a detached mount of a new file system.
func fresh(p *spawn.Script, fstype string, attrs int, options ...option) spawn.Arg {
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
func (t *Script) open(what string, tolerate unix.Errno, root spawn.Arg, path string) spawn.Arg {
	return t.script.Open(what, tolerate, unix.SYS_OPENAT2, root, t.script.Text(path), spawn.Pointer(unsafe.Pointer(&t.point)), spawn.Int(unsafe.Sizeof(t.point)))
}

// move attaches a detached mount onto what a descriptor is open on.
func (t *Script) move(what string, m, onto spawn.Arg) {
	none := t.script.Text("")
	t.script.Do(what, spawn.Never, unix.SYS_MOVE_MOUNT, m, none, onto, none, spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
}

// propagate says where mounts below the root go, and from where they come.
func (t *Script) propagate(what string, flags uintptr) {
	t.script.Do(what, spawn.Never, unix.SYS_MOUNT, spawn.Int(0), t.script.Text("/"), spawn.Int(0), spawn.Int(flags), spawn.Int(0))
}

// born makes the sandbox's /proc: only a process of its process ids' namespace can.
func (t *Script) born() {
	p := &t.birth
	proc := fresh(p, "proc", quiet|unix.MOUNT_ATTR_NODEV)
	p.Do("mount a proc", spawn.Never, unix.SYS_MOVE_MOUNT, proc, p.Text(""), spawn.At(), p.Text("/proc"), spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
}

// mountPoint begins what the calls are named that open a mount point in the root.
const mountPoint = "open the mount point /"

// blockedAs returns the error of a call that found no directory at a mount point its code and
// words: what is there came with an image, or with a snapshot that was imported.
func blockedAs(err error) error {
	call, ok := errors.AsType[*spawn.CallError](err)
	if !ok || call.Errno != unix.ENOTDIR && call.Errno != unix.ELOOP {
		return err
	}
	at, ok := strings.CutPrefix(call.What, mountPoint)
	if !ok {
		return err
	}
	return fault.Wrap(fault.Conflict, err, "the sandbox cannot be started: /%s is a link or a file, on its disk or in its image, and has to be a directory", at).
		WithRemedy("create it from another snapshot or image, or roll it back to a snapshot in which it is one")
}

// root makes the overlay the root, furnished.
func (t *Script) root() {
	p := &t.script
	root, none := spawn.Param(paramRoot), p.Text("")
	// The overlay is attached over the empty root that process 1 was born with, which
	// stays there, below. To exchange the two, by pivot_root(2), would have the kernel
	// look at each thread of the host, and to let go of the old one wait until none looks at it.
	p.Do("attach the root", spawn.Never, unix.SYS_MOVE_MOUNT, root, none, spawn.At(), p.Text("/"), spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
	for _, m := range []struct {
		mount spawn.Arg
		path  spawn.Arg
		at    string
	}{{spawn.Param(paramDev), none, "dev"}, {spawn.At(), p.Text("/proc"), "proc"}, {spawn.Param(paramSys), none, "sys"}} {
		// An image need not have it, and the sandbox's root may have removed it.
		p.Do("make /"+m.at, spawn.Any, unix.SYS_MKDIRAT, root, p.Text(m.at), spawn.Int(0o755))
		at := t.open(mountPoint+m.at, spawn.Never, root, m.at)
		p.Do("mount /"+m.at, spawn.Never, unix.SYS_MOVE_MOUNT, m.mount, m.path, at, none, spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
	}
	if t.older != nil {
		for _, m := range []struct {
			mount spawn.Arg
			at    string
		}{{spawn.Param(paramPts), "dev/pts"}, {spawn.Param(paramShm), "dev/shm"}} {
			t.move("mount /"+m.at, m.mount, t.open("open /"+m.at, spawn.Never, root, m.at))
		}
		at := p.Open("open "+sudo.Program, spawn.Never, unix.SYS_OPENAT2, root, p.Text("dev/"+programAt), spawn.Pointer(unsafe.Pointer(&t.file)), spawn.Int(unsafe.Sizeof(t.file)))
		t.move("mount "+sudo.Program, spawn.Param(paramProgram), at)
	}
	p.Do("enter the root", spawn.Never, unix.SYS_FCHDIR, root)
	p.Do("make it the root", spawn.Never, unix.SYS_CHROOT, p.Text("."))
}

// host sets what makes it a host of its own.
func (t *Script) host() {
	t.script.Do("set the host name", spawn.Never, unix.SYS_SETHOSTNAME, spawn.Param(paramName), spawn.Param(paramNameLen))
}

// masks hides and freezes kernel files. The paths are on our own procfs.
func (t *Script) masks() {
	p := &t.script
	mask := func(path string, with spawn.Arg) {
		p.Do("mask "+path, unix.ENOENT, unix.SYS_MOUNT, with, p.Text(path), spawn.Int(0), spawn.Int(unix.MS_BIND), spawn.Int(0))
	}
	for _, path := range readOnly {
		// A clone of the mount is attached onto itself; where there is no such file, neither happens.
		what, as, size := "make "+path+" read-only: clone", spawn.Pointer(unsafe.Pointer(&t.frozen)), spawn.Int(unsafe.Sizeof(t.frozen))
		flags := spawn.Int(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC)
		var clone spawn.Arg
		if t.older == nil {
			clone = p.Open(what, unix.ENOENT, unix.SYS_OPEN_TREE_ATTR, spawn.At(), p.Text(path), flags, as, size)
		} else {
			clone = p.Open(what, unix.ENOENT, unix.SYS_OPEN_TREE, spawn.At(), p.Text(path), flags)
			p.Do(what, spawn.Never, unix.SYS_MOUNT_SETATTR, clone, p.Text(""), spawn.Int(unix.AT_EMPTY_PATH), as, size)
		}
		p.Do("make "+path+" read-only: attach", spawn.Never, unix.SYS_MOVE_MOUNT, clone, p.Text(""), spawn.At(), p.Text(path), spawn.Int(unix.MOVE_MOUNT_F_EMPTY_PATH))
	}
	null, empty := p.Text("/dev/null"), p.Text("/sys/"+nothing)
	for _, path := range masked {
		mask(path, null)
	}
	for _, path := range maskedDirs {
		mask(path, empty)
	}
	for _, t := range told {
		mask(t.over, p.Text("/sys/"+t.fact))
	}
}

// userView makes the mount namespace of the user's commands, last of all.
func (t *Script) userView() {
	p := &t.script
	// Mounts that the agent makes later reach the user's view too, and nothing
	// goes the other way.
	t.propagate("share mounts with the user's view", unix.MS_SHARED)
	p.Do("the user's view: unshare mounts", spawn.Never, unix.SYS_UNSHARE, spawn.Int(unix.CLONE_NEWNS))
	t.propagate("the user's view: follow the agent's mounts", unix.MS_REC|unix.MS_SLAVE)
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
	t.view = t.older.own(p, "the user's view: keep it", getMountNS, mountNS)
}
