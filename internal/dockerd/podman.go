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
// the service, but not the Engine's namespace.
func StartPodman(ctx context.Context, o Options) (*Engine, error) {
	if err := checkPlace(o.Dir); err != nil {
		return nil, err
	}
	k, err := o.Programs.Find(ctx, "podman", programs.DebianPackage("podman"))
	if err != nil {
		return nil, err
	}
	// crun, which Debian has Podman come with, refuses a host with controllers in both versions of cgroups.
	runc, err := o.Programs.Find(ctx, "runc", programs.DebianPackage("runc"))
	if err != nil {
		return nil, err
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
	files := map[string]string{
		"containers.conf": fmt.Sprintf("[containers]\napparmor_profile = \"\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\nconmon_path = [%q]\n"+
			"[engine.runtimes]\nrunc = [%q]\n", k.Path("conmon"), runc.Path("runc")),
		"storage.conf":                        fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = \"/run/containers/storage\"\n", filepath.Join(o.Dir, "data")),
		"home/.config/containers/policy.json": `{"default":[{"type":"insecureAcceptAnything"}]}`,
	}
	for name, text := range files {
		path := filepath.Join(o.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return nil, err
		}
	}
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
	cmd.Env = append(env, "HOME="+home, "CONTAINERS_CONF="+filepath.Join(o.Dir, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(o.Dir, "storage.conf"))
	return start(ctx, o, groups, socket, cmd)
}
