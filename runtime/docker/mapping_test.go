// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package docker_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sandpit.dev/agent"
	"sandpit.dev/fault"
	"sandpit.dev/runtime/docker"
	"sandpit.dev/runtime/docker/engineapi"
)

// What a container's root does and makes is of a user that the host has not.
func rootIsNobody(t *testing.T, p *place) {
	ctx := t.Context()
	i, spec, id := p.create()
	check := func() {
		t.Helper()
		if got := p.run(i, agent.Command{Shell: "id -u; stat -c %u:%g /etc/passwd /workspace /.sandpit", User: "root"}); got != "0\n0:0\n1000:1000\n0:0\n" {
			t.Errorf("inside it is %q", got)
		}
		c, err := p.engine.InspectContainer(ctx, id)
		p.must(err)
		mapping, err := os.ReadFile(fmt.Sprintf("/proc/%d/root/proc/%d/uid_map", p.host.Engine().PID, c.State.Pid))
		p.must(err)
		// /sys/fs/cgroup itself is a tmpfs of the container's.
		if got := p.run(i, agent.Command{Shell: "find /sys/fs/cgroup -mindepth 2 -writable; find /sys /proc/sys -path /sys/fs/cgroup -prune -o -writable -print", User: "root"}); got != "" {
			t.Errorf("its root may write to the kernel's files\n%s", got)
		}
		f := strings.Fields(string(mapping))
		if len(f) != 3 || f[0] != "0" || f[1] == "0" || f[2] != "65536" {
			t.Fatalf("its users are %q", mapping)
		}
		seen := 0
		p.must(filepath.WalkDir(filepath.Join(p.dir, "instances", string(spec.ID), "run"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			seen++
			if uid := info.Sys().(*syscall.Stat_t).Uid; fmt.Sprint(uid) != f[1] { //nolint:forcetypeassert // it is Linux
				t.Errorf("%s is of user %d, want %s", e.Name(), uid, f[1])
			}
			return nil
		}))
		if seen < 2 {
			t.Errorf("the directory that is mounted has %d entries", seen)
		}
		// What is around it is not: who is that user elsewhere gets no further.
		if info, err := os.Stat(filepath.Join(p.dir, "instances", string(spec.ID))); err != nil || info.Mode().Perm() != 0o700 || info.Sys().(*syscall.Stat_t).Uid != 0 { //nolint:forcetypeassert // as above
			t.Errorf("the directory around it is %v, %v", info, err)
		}
	}
	check()
	p.run(i, agent.Command{Shell: "echo kept > file; ln -s /etc/passwd /.sandpit/run/config.json", User: "root"})
	p.must(i.Stop(ctx, 0))
	p.must(i.Start(ctx, spec))
	if got := p.run(i, agent.Command{Shell: "cat file"}); got != "kept\n" {
		t.Errorf("after a stop it has %q", got)
	}
	check()
	if info, err := os.Stat("/etc/passwd"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 { //nolint:forcetypeassert // as above
		t.Errorf("the host's file is %v, %v", info, err)
	}
	// An Engine that is started again is asked again.
	p.host.Stop()
	p.host.Start()
	p.wait(i)
	p.must(i.Start(ctx, spec))
	check()
	p.must(i.Remove(ctx))
}

// Who root is is said by the Engine, and believed only if it is somebody.
func TestWhoRootIs(t *testing.T) {
	mapped := []string{"name=seccomp,profile=default", "name=userns"}
	for dir, want := range map[string]string{"/var/lib/docker/231072.231073": "231072 231073", "/data/1.1": "1 1", "/data/2147483647.2147483647": "2147483647 2147483647"} {
		uid, gid, err := docker.RootOf(engineapi.Info{SecurityOptions: mapped, RootDir: dir})
		if got := fmt.Sprint(uid, gid); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", dir, got, err, want)
		}
	}
	for _, dir := range []string{"", "/", "/var/lib/docker", "/data/0.0", "/data/0.100000", "/data/100000.0", "/data/-1.-1", "/data/231072", "/data/231072.231072/x", "/data/2147483648.1", "/data/4294967295.4294967295", "/data/1.2.3", "/data/0x10.0x10", "/data/ 1.1", "/data/1.1/../.."} {
		if uid, gid, err := docker.RootOf(engineapi.Info{SecurityOptions: mapped, RootDir: dir}); fault.Of(err) != fault.Unsupported || fault.As(err).Remedy == "" || uid != 0 || gid != 0 {
			t.Errorf("%q: %d:%d, %v, want that it is refused", dir, uid, gid, err)
		}
	}
	for _, options := range [][]string{nil, {"name=seccomp,profile=default"}, {"name=usernsx"}, {"userns"}} {
		if uid, gid, err := docker.RootOf(engineapi.Info{SecurityOptions: options, RootDir: "/data/231072.231072"}); err != nil || uid != 0 || gid != 0 {
			t.Errorf("an Engine that maps no users, %v: %d:%d, %v", options, uid, gid, err)
		}
	}
}
