// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sandpit.dev/internal/leaktest"
)

// engine is Docker's, started for a run. An Engine changes the host that it runs on:
// it turns forwarding on, sets the firewall's policy, loads a profile into AppArmor, and
// writes below /run, /etc and /opt. So it has namespaces of its own for mounts,
// processes, network and the rest, private file systems in those places, and sees no
// AppArmor; its data, its socket and its log are in the run's directory, its cgroups
// below one name. Ended is process 1 of its namespace, and with it all that it started.
//
// It is set up as it comes, but for what sandboxes without a network have no part in: it
// has no bridge and sets no firewall. Its image has one layer, which is not a copy:
// sandpit's own root is mounted, read-only, where the Engine keeps that layer. So both
// read the same files from the same page cache, and nothing has to be unpacked.
type engine struct {
	socket  string
	version string
	thread  *private
	group   string
	process *os.Process // 1 of its namespace
	ended   chan error  // of that
	client  *http.Client
}

const engineImage = "sandpit-bench"

// engineShare is one engine for all peers that need one.
type engineShare struct {
	mu    sync.Mutex
	it    *engine
	users int
}

// open returns the engine, started if it is not there; each user closes it once.
func (s *engineShare) open(ctx context.Context, parts peerParts) (*engine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.it == nil {
		e, err := startEngine(ctx, parts)
		if err != nil {
			return nil, err
		}
		s.it = e
	}
	s.users++
	return s.it, nil
}

func (s *engineShare) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users > 0 {
		return nil
	}
	e := s.it
	s.it = nil
	return e.close()
}

// engineInit is process 1 of an engine's namespace: it shows the processes of that
// namespace only, and takes care of orphans.
const engineInit = `mount -t proc proc /proc && { "$@" & wait; }`

func startEngine(ctx context.Context, parts peerParts) (_ *engine, err error) {
	if err := checkPlace(parts.dir); err != nil {
		return nil, err
	}
	k, err := parts.programs.find(ctx, "dockerd", debianPackage("docker.io"))
	if err != nil {
		return nil, err
	}
	config := filepath.Join(parts.dir, "daemon.json")
	socket := filepath.Join(parts.dir, "docker.sock")
	b, err := json.Marshal(map[string]any{
		"data-root": filepath.Join(parts.dir, "data"), "exec-root": "/run/docker", "pidfile": "/run/docker.pid",
		"hosts": []string{"unix://" + socket}, "bridge": "none", "iptables": false, "ip6tables": false,
		"storage-driver": "overlay2", "features": map[string]bool{"containerd-snapshotter": false},
		"exec-opts": []string{"native.cgroupdriver=cgroupfs"}, "cgroup-parent": "/" + parts.group,
	})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, b, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(parts.dir, "dockerd.log"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	e := &engine{socket: socket, group: parts.group, ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
	if e.thread, err = newPrivate(); err != nil {
		return nil, err
	}
	cmd := k.command(context.WithoutCancel(ctx), "sh", "-c", engineInit, "sh", k.path("dockerd"), "--config-file", config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Setpgid:    true,
		Pdeathsig:  syscall.SIGKILL, // the thread ends with us, however we end
	}
	err = e.thread.do(func() error {
		if err := hidePlaces(); err != nil {
			return err
		}
		return cmd.Start()
	})
	if err != nil {
		e.thread.close()
		return nil, err
	}
	e.process = cmd.Process
	go func() { e.ended <- cmd.Wait() }()
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if err := e.wait(ctx, log.Name()); err != nil {
		return nil, err
	}
	return e, e.addImage(ctx, parts.root)
}

// checkPlace refuses a directory that hidePlaces would hide.
func checkPlace(dir string) error {
	for _, place := range []string{"/run", "/opt", "/etc"} {
		if strings.HasPrefix(dir, place+"/") {
			return fmt.Errorf("dockerd gets a %s of its own, and its data in %s would be hidden: choose another directory by --data", place, dir)
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

// wait waits until the engine answers, and hears what it is.
func (e *engine) wait(ctx context.Context, log string) error {
	limit, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		var v struct {
			Version    string
			Components []struct{ Name, Version string }
		}
		if err := e.call(limit, http.MethodGet, "/version", nil, &v); err == nil {
			e.version = "Docker Engine " + v.Version
			for _, c := range v.Components {
				if c.Name == "containerd" || c.Name == "runc" {
					e.version += ", " + c.Name + " " + c.Version
				}
			}
			return nil
		}
		select {
		case err := <-e.ended:
			e.ended <- err
			return fmt.Errorf("dockerd ended: %s", lastWords(log))
		case <-limit.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("dockerd is not ready after %v: %s", readyTimeout, lastWords(log))
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

// addImage makes an image of one empty layer, and has the root stand in for that layer.
func (e *engine) addImage(ctx context.Context, root string) error {
	var empty bytes.Buffer
	t := tar.NewWriter(&empty)
	if err := errors.Join(t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}), t.Close()); err != nil {
		return err
	}
	if err := e.send(ctx, http.MethodPost, "/images/create?fromSrc=-&repo="+engineImage, "application/x-tar", &empty, nil); err != nil {
		return err
	}
	var image struct {
		GraphDriver struct {
			Name string
			Data struct{ UpperDir string }
		}
	}
	if err := e.call(ctx, http.MethodGet, "/images/"+engineImage+"/json", nil, &image); err != nil {
		return err
	}
	layer := image.GraphDriver.Data.UpperDir
	if image.GraphDriver.Name != "overlay2" || layer == "" {
		return fmt.Errorf("the Engine keeps its layers in %q, and the benchmark knows overlay2 alone", image.GraphDriver.Name)
	}
	return e.thread.do(func() error {
		if err := unix.Mount(root, layer, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount the root as the layer: %w", err)
		}
		return unix.Mount("", layer, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	})
}

// cpu returns the processor time of all that ever ran in the engine's namespace,
// containers included, to a tick of 10 ms for each process that lives.
func (e *engine) cpu() (time.Duration, error) {
	sum, err := leaktest.CPU(e.process.Pid)
	if err != nil {
		return 0, err
	}
	alive, err := leaktest.Scope{Servers: []int{e.process.Pid}}.Processes()
	if err != nil {
		return 0, err
	}
	for _, p := range alive {
		if used, err := leaktest.CPU(p.PID); err == nil { // else it ended meanwhile
			sum += used
		}
	}
	return sum, nil
}

// metered runs fn, and gives the processor time that it cost the engine.
func (e *engine) metered(fn func() error) (time.Duration, error) {
	before, err := e.cpu()
	if err != nil {
		return 0, err
	}
	if err := fn(); err != nil {
		return 0, err
	}
	after, err := e.cpu()
	return max(0, after-before), err
}

// close ends all, and removes what is outside of the run's directory.
func (e *engine) close() error {
	e.client.CloseIdleConnections()
	_ = e.process.Kill() // it may have ended
	<-e.ended            // and with it its whole namespace
	e.thread.close()
	return sweepGroup(e.group)
}

// call sends a request with a body of JSON, if there is any, and reads the answer
// into out, if that is not nil.
func (e *engine) call(ctx context.Context, method, path string, in, out any) error {
	if in == nil {
		return e.send(ctx, method, path, "", http.NoBody, out)
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return e.send(ctx, method, path, "application/json", bytes.NewReader(b), out)
}

func (e *engine) send(ctx context.Context, method, path, kind string, body io.Reader, out any) (err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+path, body)
	if err != nil {
		return err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(b))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}
