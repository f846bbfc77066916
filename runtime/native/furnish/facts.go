// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package furnish

import (
	"path"

	"golang.org/x/sys/unix"

	"sandpit.dev/linux/spawn"
	"sandpit.dev/runtime/native/boot"
)

// told are the kernel's files over which the sandbox's own lie: they tell its limits and use, where
// the kernel's tell the host's. The agent writes them, through a mount that is not within reach
// inside; what is there is a read-only one.
//
// What is not among them stays the host's. /proc/uptime has to: ps counts from there when a process
// was started.
var told = [...]struct{ fact, over string }{
	{boot.MemoryFact, "/proc/meminfo"}, {boot.StatFact, "/proc/stat"}, {boot.LoadFact, "/proc/loadavg"},
}

// nothing is an empty directory of /sys.
const nothing = "fs/empty"

// facts makes the empty files of a new /sys.
func facts(p *spawn.Script, sys spawn.Arg) {
	p.Do("make readable files", spawn.Never, unix.SYS_UMASK, spawn.Int(0)) // whatever the server's is
	for _, dir := range []string{"devices", "devices/system", "devices/system/cpu", "fs", path.Dir(boot.MemoryFact), path.Dir(boot.CPUMaxFact), nothing} {
		p.Do("make /sys/"+dir, spawn.Never, unix.SYS_MKDIRAT, sys, p.Text(dir), spawn.Int(0o555))
	}
	for _, name := range boot.Facts() {
		p.Do("make /sys/"+name, spawn.Never, unix.SYS_MKNODAT, sys, p.Text(name), spawn.Int(unix.S_IFREG|0o444), spawn.Int(0))
	}
	p.Do("make /sys/"+boot.PresentFact, spawn.Never, unix.SYS_SYMLINKAT, p.Text(path.Base(boot.PossibleFact)), sys, p.Text(boot.PresentFact))
}
