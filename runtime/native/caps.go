// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package native

import "golang.org/x/sys/unix"

// rootCapNames are what commands of the sandbox's own root may have: enough for
// dpkg, pip and adduser, nothing that mounts, traces or configures. All of them
// act only inside the sandbox's user namespace.
var rootCapNames = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_NET_BIND_SERVICE", "CAP_SETGID", "CAP_SETUID",
}

// toldCalls are those that the agent answers commands with the sandbox's limits.
var toldCalls = []string{"sched_getaffinity", "sysinfo"}

const (
	rootCaps uint64 = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID |
		1<<unix.CAP_KILL | 1<<unix.CAP_NET_BIND_SERVICE | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID

	// agentCaps is what the agent needs on top: to mount and to give its threads
	// their views (SYS_ADMIN, SYS_CHROOT), to drop capabilities for good (SETPCAP),
	// and to look at its children (SYS_PTRACE).
	agentCaps = rootCaps | 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SYS_CHROOT | 1<<unix.CAP_SETPCAP | 1<<unix.CAP_SYS_PTRACE
)

// agentEnv keeps the agent small: one thread of Go code, and a heap that is
// collected early.
var agentEnv = []string{"GOMAXPROCS=1", "GOGC=25", "GOMEMLIMIT=12MiB", "GODEBUG=madvdontneed=1,containermaxprocs=0,updatemaxprocs=0", "PATH=/usr/bin:/bin", "TZ=UTC"}
