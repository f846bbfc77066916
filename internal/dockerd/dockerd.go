// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package dockerd runs an Engine for a test or a benchmark, Docker's or Podman's, on a host that
// has none and shall not get one.
//
// An Engine changes the host that it runs on: it turns forwarding on, sets the firewall's policy,
// loads a profile into AppArmor, and writes below /run, /etc and /opt. So it has namespaces of its
// own for mounts, processes, network and the rest, private file systems in those places, and sees
// no AppArmor; its data, its socket and its log are in a directory that the caller gives, its
// cgroups below one name. Ended is process 1 of its namespace, and with it all that it started.
//
// It is set up as it comes, but for what sandboxes without a network have no part in: it
// has no bridge and sets no firewall.
package dockerd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/programs"
)

// Options configure an Engine.
type Options struct {
	// Dir holds its data, its socket and its log. It exists, has a short path, and is not below
	// /run, /opt or /etc. An Engine that is started there again has what an earlier one kept.
	Dir   string
	Group string // name of the cgroup below which its own are; nobody else's
	// Programs finds the Engine's.
	Programs *programs.Finder
	Suite    string // Debian's release that it is of; "": the host's
	// MapUsers has Docker's Engine map the users of containers: their root is no user of the host's.
	MapUsers bool
	// Rootless has the Engine be nobody on the host: its own root, and that of containers, is none of the host's users. Podman's has to be of a Suite.
	Rootless bool
	// DataBytes is the size of a file system in memory that holds its data, which is gone with it. Zero: Dir holds them.
	DataBytes int64
	// DataFS makes it one in a file of Dir's, which stays: btrfs, whose Engine is Docker's of that name, or xfs, mounted
	// with DataOptions. mkfs makes it.
	DataFS      string
	DataOptions string
	// TLS has Docker's Engine listen at TLSAddress in its own network, too. Whom it trusts, and what it is, are files that
	// Docker's own programs would have: ca.pem, cert.pem and key.pem in a directory that it sees. "": it has its socket alone.
	TLS string
}

// TLSAddress is where an Engine listens that has a port, in its own network: see [Engine.DialTCP].
const TLSAddress = "127.0.0.1:2376"

// Engine is one that runs.
type Engine struct {
	Socket string // path of its unix socket
	PID    int    // of process 1 of its namespace

	thread  *programs.Private
	groups  []string
	mapped  bool
	cleans  bool // it unmounts what is mounted in its data: see elsewhere
	process *os.Process
	ended   chan error // of that
}

const (
	readyTimeout = 30 * time.Second
	askEvery     = 5 * time.Millisecond
)

// initScript is process 1 of an Engine's namespace: it shows the processes of that
// namespace only, and takes care of orphans.
const initScript = `mount -t proc proc /proc && { "$@" & wait; }`

// Start starts Docker's Engine and waits until it answers. The caller closes it.
func Start(ctx context.Context, o Options) (_ *Engine, err error) {
	if err := checkPlace(o.Dir); err != nil {
		return nil, err
	}
	k, err := FindDocker(ctx, o)
	if err != nil {
		return nil, err
	}
	config := filepath.Join(o.Dir, "daemon.json")
	socket := filepath.Join(o.Dir, "docker.sock")
	set := map[string]any{
		"data-root": filepath.Join(o.Dir, "data"), "exec-root": "/run/docker", "pidfile": "/run/docker.pid",
		"hosts": []string{"unix://" + socket}, "bridge": "none", "iptables": false, "ip6tables": false,
		"storage-driver": layersBy(o.DataFS), "features": map[string]bool{"containerd-snapshotter": false},
		"max-download-attempts": 1, // each more waits five seconds longer
	}
	if o.Rootless { // such one has no cgroups of version 1
		set["rootless"], set["userland-proxy"] = true, false
	} else {
		set["exec-opts"], set["cgroup-parent"] = []string{"native.cgroupdriver=cgroupfs"}, "/"+o.Group
	}
	if o.TLS != "" {
		set["hosts"] = []string{"unix://" + socket, "tcp://" + TLSAddress}
		set["tlsverify"], set["tlscacert"] = true, filepath.Join(o.TLS, "ca.pem")
		set["tlscert"], set["tlskey"] = filepath.Join(o.TLS, "cert.pem"), filepath.Join(o.TLS, "key.pem")
	}
	if o.MapUsers {
		set["userns-remap"] = mappedUser
		// Containers' root comes by here to its files.
		if err := os.Chmod(o.Dir, 0o711); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, b, 0o600); err != nil {
		return nil, err
	}
	prepare := k.Cover
	if o.MapUsers {
		prepare = func() error { return errors.Join(k.Cover(), addUser(0)) }
	}
	if o.DataFS != "" {
		if err := makeData(ctx, o); err != nil {
			return nil, err
		}
	}
	cmd := k.Command(context.WithoutCancel(ctx), "sh", "-c", initScript, "sh", k.Path("dockerd"), "--config-file", config)
	if o.Rootless {
		nobody := asNobody(cmd, o)
		prepare = func() error { return errors.Join(k.Cover(), nobody()) }
	}
	return start(ctx, o, []string{o.Group}, socket, cmd, prepare)
}

// FindDocker finds the programs of Docker's Engine.
func FindDocker(ctx context.Context, o Options) (programs.Kit, error) {
	return find(ctx, o, "dockerd", "docker.io", "docker-cli")
}

// FindPodman finds the programs of Podman's.
func FindPodman(ctx context.Context, o Options) (programs.Kit, error) {
	if o.Suite != "" { // podman itself says nothing where there is no /proc
		return find(ctx, o, "conmon", "podman", "runc uidmap")
	}
	return find(ctx, o, "podman", "podman", "")
}

// find finds a program of a package. In another release than the host's, more is needed, too.
func find(ctx context.Context, o Options, program, pkg, more string) (programs.Kit, error) {
	if o.Suite != "" {
		return o.Programs.Find(ctx, program, programs.DebianSuite{Suite: o.Suite, Packages: pkg + " " + more})
	}
	return o.Programs.Find(ctx, program, programs.DebianPackage(pkg))
}

// start has the command run in namespaces of its own, in which prepare was called, and waits until it answers at the socket. The groups are
// swept in the end.
func start(ctx context.Context, o Options, groups []string, socket string, cmd *exec.Cmd, prepare func() error) (_ *Engine, err error) {
	log, err := os.Create(filepath.Join(o.Dir, "engine.log"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	e := &Engine{Socket: socket, groups: groups, mapped: o.MapUsers || o.Rootless, ended: make(chan error, 1)}
	if e.thread, err = programs.NewPrivate(); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = o.Dir // Podman's monitor of a container writes a file into its own
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL // the thread ends with us, however we end
	err = e.thread.Do(func() error {
		if err := errors.Join(programs.LetGo(o.Dir), hidePlaces()); err != nil {
			return err
		}
		if err := mountData(ctx, o); err != nil {
			return err
		}
		if err := prepare(); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err != nil {
		e.thread.Close()
		return nil, err
	}
	e.process, e.PID = cmd.Process, cmd.Process.Pid
	go func() { e.ended <- cmd.Wait() }()
	if err := e.wait(ctx, log.Name()); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Do runs fn where the Engine's mounts are.
func (e *Engine) Do(fn func() error) error { return e.thread.Do(fn) }

// Close ends all, and removes what is outside of the Engine's directory.
func (e *Engine) Close() error {
	_ = e.process.Kill() // it may have ended
	<-e.ended            // and with it its whole namespace
	e.thread.Close()
	var errs []error
	for _, name := range e.groups {
		errs = append(errs, programs.SweepGroup(name))
	}
	return errors.Join(errs...)
}

// checkPlace refuses a directory that hidePlaces would hide.
func checkPlace(dir string) error {
	for _, place := range []string{"/run", "/opt", "/etc"} {
		if strings.HasPrefix(dir, place+"/") {
			return fmt.Errorf("dockerd gets a %s of its own, and its data in %s would be hidden: choose another directory", place, dir)
		}
	}
	return nil
}

// hidePlaces mounts file systems of the thread's own where an Engine writes outside of
// its data. What it writes is gone with them.
func hidePlaces() error {
	places := []string{"/run", "/opt"}
	const modules = "/sys/kernel/security" // where AppArmor is seen
	if _, err := os.Lstat(modules); err == nil {
		places = append(places, modules)
	}
	for _, place := range places {
		if err := unix.Mount("tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
			return fmt.Errorf("a private %s: %w", place, err)
		}
	}
	for _, d := range []string{"/run/etc-upper", "/run/etc-work"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=/run/etc-upper,workdir=/run/etc-work"); err != nil {
		return fmt.Errorf("a private /etc: %w", err)
	}
	return nil
}

// wait waits until the Engine answers.
func (e *Engine) wait(ctx context.Context, log string) error {
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", e.Socket)
	}}
	defer transport.CloseIdleConnections()
	for {
		req, err := http.NewRequestWithContext(limit, http.MethodGet, "http://engine/_ping", nil)
		if err != nil {
			return err
		}
		if resp, err := transport.RoundTrip(req); err == nil {
			_ = resp.Body.Close() // what it says does not matter
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-e.ended:
			e.ended <- err
			return fmt.Errorf("the Engine ended: %s", lastWords(log))
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the Engine is not ready after %v: %s", readyTimeout, lastWords(log))
		case <-time.After(askEvery):
		}
	}
}

func lastWords(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(b[max(0, len(b)-1024):]))
}
