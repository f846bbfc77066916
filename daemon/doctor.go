// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/agent/embedded"
	"sandpit.dev/doctor"
	"sandpit.dev/fault"
	"sandpit.dev/runtime"
)

// CheckStatus is the severity of a [Check].
type CheckStatus = doctor.Status

// See [doctor.Status].
const (
	Passed = doctor.Passed
	Warned = doctor.Warned
	Failed = doctor.Failed
)

// Check is the result of one check.
type Check struct {
	Name   string      `json:"name"`
	Status CheckStatus `json:"status"`
	Detail string      `json:"detail"`           // what was found
	Remedy string      `json:"remedy,omitempty"` // how to mend it
	Done   string      `json:"done,omitempty"`   // how it was mended, by [Repair]
}

// What a host should have. Less is a warning.
const (
	fewFiles   = 65536
	fewPids    = 131072
	littleDisk = 4 << 30
)

// Doctor checks the host, for a server with this configuration. With probe it also opens each
// runtime in a temporary directory beside the data directory, which makes and removes a store of
// layers and cgroups; if a server runs, ask the server instead. It needs no server and never
// fails: what it cannot find out is a check of its own.
func Doctor(ctx context.Context, cfg Config, probe bool) (checks []Check) {
	for _, l := range cfg.hostLooks() {
		checks = append(checks, l.do(ctx))
	}
	for _, k := range cfg.Runtimes.wanted() {
		if _, host := k.(runtime.HostKind); probe && (!host || os.Geteuid() == 0) {
			checks = append(checks, tryRuntime(ctx, cfg.Data, k)...)
		}
	}
	return checks
}

// look is one check that has not been made yet.
type look struct {
	name string
	do   func(context.Context) Check
}

// hostLooks are the checks of the host.
func (c *Config) hostLooks() []look {
	simply := func(name string, do func() Check) look {
		return look{name, func(context.Context) Check { return do() }}
	}
	looks := []look{simply("kernel", checkKernel), simply("agent", checkAgent)}
	if c.Runtimes.host() != nil {
		systems := hostFileSystems()
		looks = []look{
			simply("root", checkUser), simply("kernel", checkKernel), simply("agent", checkAgent), simply("namespaces", checkNamespaces), simply("cgroups", checkCgroups),
			simply("overlay", systems.checkOverlay), simply("btrfs", func() Check { return systems.checkBtrfs("/dev/loop-control") }),
			simply("mmdebstrap", func() Check { return checkProgram("mmdebstrap", "builds the images", "apt-get install mmdebstrap") }),
		}
	}
	looks = append(looks, simply("disk/data", func() Check { return checkDisk("data", c.Data) }), simply("disk/images", func() Check { return checkDisk("images", c.Images.Dir) }),
		simply("open files", checkFiles))
	if c.Runtimes.host() != nil {
		looks = append(looks, simply("processes", checkPids), simply("core dumps", func() Check { return checkDumps("/proc/sys/fs/suid_dumpable") }))
	}
	if len(c.Network.CAFiles) > 0 {
		looks = append(looks, simply("authorities", func() Check { return checkAuthorities(c.Network.CAFiles, time.Now()) }))
	}
	if c.TLS.on() {
		looks = append(looks, simply("tls", func() Check { return c.TLS.checkTLS(c.Domain, time.Now()) }))
	}
	if c.Domain != "" {
		looks = append(looks, look{"domain", func(ctx context.Context) Check { return checkNames(ctx, c.Domain, net.DefaultResolver, ownAddresses()) }})
	}
	if c.Network.Elicit {
		looks = append(looks, simply("elicitation", c.Network.checkElicit))
	}
	return looks
}

func ok(name, format string, args ...any) Check {
	return Check{Name: name, Status: Passed, Detail: fmt.Sprintf(format, args...)}
}

func warning(name, remedy, format string, args ...any) Check {
	return Check{Name: name, Status: Warned, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}

func failure(name, remedy, format string, args ...any) Check {
	return Check{Name: name, Status: Failed, Detail: fmt.Sprintf(format, args...), Remedy: remedy}
}

func checkUser() Check {
	if uid := os.Geteuid(); uid != 0 {
		return failure("root", "start the server with sudo; then run this with sudo too, for the whole picture",
			"this is uid %d; the sandboxes of this host need root", uid)
	}
	return ok("root", "yes")
}

// checkKernel only names the kernel: the runtime decides whether it suffices.
func checkKernel() Check {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return failure("kernel", "", "it does not tell its release: %v", err)
	}
	return ok("kernel", "%s %s", unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]))
}

func checkAgent() Check {
	program, err := embedded.Program()
	if err != nil || len(program) == 0 {
		return failure("agent", "build it with `make build`", "this build of sandpit has no agent in it")
	}
	return ok("agent", "%d KiB, in this program", len(program)>>10)
}

func checkNamespaces() Check {
	var missing []string
	for _, ns := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		if _, err := os.Stat("/proc/self/ns/" + ns); err != nil {
			missing = append(missing, ns)
		}
	}
	if len(missing) > 0 {
		return failure("namespaces", "use a kernel that is built with them", "the kernel lacks: %s", strings.Join(missing, ", "))
	}
	most, err := readInt("/proc/sys/user/max_user_namespaces")
	switch {
	case err != nil:
		return warning("namespaces", "mount /proc", "how many there may be is not known: %v", err)
	case most == 0:
		return failure("namespaces", "sysctl -w user.max_user_namespaces=15000", "user namespaces are turned off")
	}
	return ok("namespaces", "all kinds, at most %d user namespaces", most)
}

// checkCgroups only names the layout: the runtime decides what it can do with it.
func checkCgroups() Check {
	b, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return failure("cgroups", "mount /proc", "%v", err)
	}
	var v1, v2 bool
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 {
			v1, v2 = v1 || f[2] == "cgroup", v2 || f[2] == "cgroup2"
		}
	}
	switch {
	case v1 && v2:
		return ok("cgroups", "version 2, and version 1 beside it")
	case v2:
		return ok("cgroups", "version 2")
	case v1:
		return ok("cgroups", "version 1 alone")
	}
	return failure("cgroups", "mount -t cgroup2 none /sys/fs/cgroup", "none are mounted")
}

func checkProgram(name, what, remedy string) Check {
	path, err := exec.LookPath(name)
	if err != nil {
		return warning(name, remedy, "it is missing; it %s", what)
	}
	return ok(name, "%s", path)
}

func checkDisk(name, dir string) Check {
	at := existing(dir)
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return warning("disk/"+name, "", "%s: %v", at, err)
	}
	free := int64(st.Bavail) * st.Bsize
	if free < littleDisk {
		return warning("disk/"+name, "free some, or choose another place with --data and --images", "%s has %d MiB free", dir, free>>20)
	}
	return ok("disk/"+name, "%s has %d GiB free", dir, free>>30)
}

// existing returns dir, or its nearest ancestor that exists.
func existing(dir string) string {
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func checkFiles() Check {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return warning("open files", "", "the limit is not known: %v", err)
	}
	if r.Max < fewFiles {
		return warning("open files", "ulimit -Hn 1048576, or LimitNOFILE=1048576 in the service", "the limit is %d: it will not do for thousands of sandboxes", r.Max)
	}
	return ok("open files", "at most %d", r.Max)
}

func checkPids() Check {
	most, err := readInt("/proc/sys/kernel/pid_max")
	if err != nil {
		return warning("processes", "mount /proc", "the limit is not known: %v", err)
	}
	if most < fewPids {
		return warning("processes", "sysctl -w kernel.pid_max=4194304", "the host has at most %d: enough for about %d idle sandboxes", most, most/8)
	}
	return ok("processes", "at most %d on the host", most)
}

// checkDumps checks what the kernel sets as a process's protection from dumps and debuggers when
// it changes its user. Process 1 of a sandbox does so for each command, in memory that it shares
// with the command until that begins, which overrides its own setting.
func checkDumps(path string) Check {
	const name, setting = "core dumps", "fs.suid_dumpable"
	how, err := readInt(path)
	switch {
	case err != nil:
		return warning(name, "mount /proc", "%s is not known: %v", setting, err)
	case how != 0:
		return warning(name, "sysctl -w fs.suid_dumpable=0, and the same in a file of /etc/sysctl.d, since what handles crashes on this host may set it again at the next boot",
			"%s is %d: the first process of a sandbox, which knows values of secrets, loses its protection from dumps with the first command; "+
				"then only its core size limit keeps that memory out of this host's core files", setting, how)
	}
	return ok(name, "%s is 0: a process that changes its user is not dumped", setting)
}

func readInt(path string) (int64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
}

// tryRuntime opens a runtime in a directory that is removed again.
func tryRuntime(ctx context.Context, data string, k runtime.Kind) (checks []Check) {
	program, err := embedded.Program()
	if err != nil || len(program) == 0 {
		return nil // checkAgent has said so
	}
	dir, err := os.MkdirTemp(existing(filepath.Dir(data)), ".sandpit-doctor-")
	if errors.Is(err, fs.ErrPermission) { // of a user who has the data directory alone
		dir, err = os.MkdirTemp(existing(data), ".sandpit-doctor-")
	}
	if err != nil {
		return []Check{failure(k.Name(), "choose another data directory with --data", "%v", err)}
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			checks = append(checks, warning(k.Name(), "remove it", "a temporary directory is left: %v", err))
		}
	}()
	driver, err := k.Open(ctx, runtime.OpenOptions{
		Place: runtime.Place{Dir: dir}, Agent: program, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return []Check{refused(k.Name(), Failed, err)}
	}
	defer func() {
		if err := driver.Close(); err != nil {
			checks = append(checks, warning(k.Name(), "", "it cannot be closed: %v", err))
		}
	}()
	caps, err := driver.Probe(ctx)
	if err != nil {
		return []Check{refused(k.Name(), Failed, err)}
	}
	for _, f := range runtime.Features() {
		name := k.Name() + "/" + string(f)
		switch why, known := caps[f]; {
		case known && why == nil:
			checks = append(checks, ok(name, "works"))
		case f == runtime.Isolation:
			checks = append(checks, refused(name, Failed, why))
		default:
			checks = append(checks, refused(name, Warned, why))
		}
	}
	return checks
}

// refused returns a check that failed with an error, cause included: the doctor's user
// administers the host.
func refused(name string, s CheckStatus, err error) Check {
	if err == nil {
		return Check{Name: name, Status: s, Detail: "the runtime says nothing of it"}
	}
	c := Check{Name: name, Status: s, Detail: err.Error()}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		c.Remedy = e.Remedy
	}
	return c
}
