// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package dockerd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sandpit.dev/internal/programs"
)

// podmanGroup is the cgroup below which Podman's containers are, whatever it is told.
const podmanGroup = "libpod_parent"

// StartPodman starts Podman's service, as root, and waits until it answers as Start does. Its containers outlive
// the service, but not the Engine's namespace. What cleans up after a container that ended finds its libraries in a suite's alone.
func StartPodman(ctx context.Context, o Options) (*Engine, error) {
	if err := checkPlace(o.Dir); err != nil {
		return nil, err
	}
	k, err := FindPodman(ctx, o)
	if err != nil {
		return nil, err
	}
	// crun, which Debian has Podman come with, refuses a host with controllers in both versions of cgroups.
	runc := k
	if o.Suite == "" {
		if runc, err = o.Programs.Find(ctx, "runc", programs.DebianPackage("runc")); err != nil {
			return nil, err
		}
	}
	groups := []string{o.Group}
	theirs, err := filepath.Glob("/sys/fs/cgroup/*/" + podmanGroup)
	if err != nil {
		return nil, err
	}
	if len(theirs) == 0 {
		groups = append(groups, podmanGroup)
	}
	home := filepath.Join(o.Dir, "home")
	socket := filepath.Join(o.Dir, "podman.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cmd := k.Command(context.WithoutCancel(ctx), "sh", "-c", initScript, "sh", k.Path("podman"), "system", "service", "--time=0", "unix://"+socket)
	var env []string
	for _, v := range cmd.Env {
		if !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "XDG_") {
			env = append(env, v)
		}
	}
	cmd.Env = append(env, "HOME="+home, "TMPDIR="+o.Dir, // where it leaves what it was sent when it is ended
		"CONTAINERS_CONF="+filepath.Join(o.Dir, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(o.Dir, "storage.conf"))
	for name, text := range map[string]string{
		"containers.conf": fmt.Sprintf("[containers]\napparmor_profile = \"\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\nconmon_path = [%q]\n"+
			"[engine.runtimes]\nrunc = [%q]\n", k.Path("conmon"), runc.Path("runc")),
		"storage.conf": fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = \"/run/containers/storage\"\n", filepath.Join(o.Dir, "data")),
	} {
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	e, err := start(ctx, o, groups, socket, cmd, func() error { return errors.Join(k.Cover(), acceptImages()) })
	if err == nil {
		e.cleans = o.Suite != ""
	}
	return e, err
}

// acceptImages writes which images are taken to the thread's own /etc, where Podman looks for that when it makes one of a container.
func acceptImages() error {
	const dir = "/etc/containers"
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/policy.json", []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o644))
}
