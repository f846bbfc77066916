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

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/programs"
)

// podmanGroup is the cgroup below which Podman's containers are, whatever it is told.
const podmanGroup = "libpod_parent"

// StartPodman starts Podman's service, as root or as a user, and waits until it answers as Start does. Its containers outlive
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
	home, run := filepath.Join(o.Dir, "home"), "/run/containers"
	script := initScript
	if o.Rootless {
		run, script = rootlessRun, fmt.Sprintf(rootlessScript, mappedFirst)
	}
	socket := filepath.Join(o.Dir, "podman.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	cmd := k.Command(context.WithoutCancel(ctx), "sh", "-c", script, "sh", k.Path("podman"), "system", "service", "--time=0", "unix://"+socket)
	var env []string
	for _, v := range cmd.Env {
		if !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "XDG_") {
			env = append(env, v)
		}
	}
	cmd.Env = append(env, "HOME="+home, "TMPDIR="+o.Dir, // where it leaves what it was sent when it is ended
		"CONTAINERS_CONF="+filepath.Join(o.Dir, "containers.conf"), "CONTAINERS_STORAGE_CONF="+filepath.Join(o.Dir, "storage.conf"))
	if o.Rootless {
		cmd.Env = append(cmd.Env, "USER="+mappedUser, "XDG_RUNTIME_DIR="+run)
	}
	for name, text := range map[string]string{
		"containers.conf": fmt.Sprintf("[containers]\napparmor_profile = \"\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\nruntime = \"runc\"\nconmon_path = [%q]\n"+
			"[engine.runtimes]\nrunc = [%q]\n", k.Path("conmon"), runc.Path("runc")),
		"storage.conf": fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", filepath.Join(o.Dir, "data"), run+"/storage"),
	} {
		if err := os.WriteFile(filepath.Join(o.Dir, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	e, err := start(ctx, o, groups, socket, cmd, func() error {
		err := errors.Join(k.Cover(), acceptImages())
		if o.Rootless {
			err = errors.Join(err, giveToUser(o.Dir, home))
		}
		return err
	})
	if err == nil {
		e.cleans = o.Suite != ""
	}
	return e, err
}

// A Podman that is not root is begun by a user as on any host: it makes its user namespace itself, by newuidmap, of the user and the range that is
// the user's in /etc.
const (
	rootlessRun    = "/run/user"
	rootlessScript = `mount -t proc proc /proc && { setpriv --reuid=%[1]d --regid=%[1]d --clear-groups -- "$@" & wait; }`
)

// giveToUser adds the user to the thread's own /etc, and makes what is in the Engine's directory the user's.
func giveToUser(dir, home string) error {
	// What is lent later comes to its namespace, too.
	err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""), addUser(1), os.MkdirAll(home, 0o700), os.MkdirAll(rootlessRun, 0o700))
	for _, path := range []string{dir, home, rootlessRun, filepath.Join(dir, "containers.conf"), filepath.Join(dir, "storage.conf")} {
		err = errors.Join(err, os.Chown(path, mappedFirst, mappedFirst))
	}
	return err
}

// acceptImages writes which images are taken to the thread's own /etc, where Podman looks for that when it makes one of a container.
func acceptImages() error {
	const dir = "/etc/containers"
	return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/policy.json", []byte(`{"default":[{"type":"insecureAcceptAnything"}]}`), 0o644))
}
