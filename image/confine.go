// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// confined runs a program of the host as the first process of a process
// namespace, with private mounts: whatever ends this process or ctx ends every
// process below and every mount that they made. It also inherits the lock, so
// no other build begins while one of them lives.
func (w *work) confined(ctx context.Context, env []string, out io.Writer, argv ...string) error {
	args := append([]string{
		"--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc", "--",
	}, argv...)
	cmd := exec.CommandContext(ctx, "unshare", args...)
	cmd.Env = env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = []*os.File{w.lock.file}
	// Setpgid keeps a terminal's ^C from the build: it ends by ctx alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 10 * time.Second

	// The kernel sends the death signal when the thread that forked ends, so
	// that thread has to stay for as long as the program runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}

//go:embed chroot.sh
var chrootScript string

// inside is how a program of the new root runs.
type inside struct {
	// Network lets it reach what the host reaches; else it has not even loopback.
	Network bool
	// Home is the program's home directory; the default is the empty /tmp.
	Home string
	// Binds are files and directories of the host that it sees read-only, by
	// their place in the root. The place must exist.
	Binds map[string]string
	// Writable is a directory of the host that it sees as /mnt; may be empty.
	Writable string
	Env      []string
}

// chroot runs a program of the new root as the sandbox's user, without privileges, in namespaces
// of its own, and returns what it wrote to stdout, at most 64 KiB. Its stderr goes to the stage's
// output.
func (w *work) chroot(ctx context.Context, in inside, argv ...string) (string, error) {
	if in.Home == "" {
		in.Home = "/tmp"
	}
	var binds strings.Builder
	for at, from := range in.Binds {
		fmt.Fprintf(&binds, "%s\t%s\n", from, at)
	}
	network := "none"
	if in.Network {
		network = "host"
	}
	args := append([]string{"sh", "-c", chrootScript, "sh", w.root, network, in.Writable, binds.String()}, argv...)
	env := append([]string{"HOME=" + in.Home, "PATH=" + searchPath, "LANG=C.UTF-8"}, in.Env...)
	stdout := new(limited)
	err := w.confined(ctx, env, stdout, args...)
	if err != nil {
		_, _ = io.WriteString(w.lines, stdout.String()+"\n")
	}
	return stdout.String(), err
}

// limited keeps the first 64 KiB that are written to it.
type limited struct{ b strings.Builder }

const limitedBytes = 64 << 10

func (l *limited) Write(p []byte) (int, error) {
	l.b.Write(p[:min(len(p), limitedBytes-l.b.Len())])
	return len(p), nil
}

func (l *limited) String() string { return l.b.String() }

// hostEnv is what programs of the host get: where to find programs, and what
// the host's user set to reach the outside. No secret of the server's is in it.
func hostEnv(more ...string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"}
	for _, kv := range os.Environ() {
		key, _, _ := strings.Cut(kv, "=")
		if outward(key) {
			env = append(env, kv)
		}
	}
	return append(env, more...)
}

// outward reports whether an environment variable says how to reach the outside.
func outward(key string) bool {
	switch strings.ToLower(key) {
	case "http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy",
		"ssl_cert_file", "ssl_cert_dir", "node_extra_ca_certs", "requests_ca_bundle", "curl_ca_bundle":
		return true
	}
	upper := strings.ToUpper(key)
	return strings.HasPrefix(upper, "PIP_") || strings.HasPrefix(upper, "NPM_CONFIG_")
}
