// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/client"
	"sandpit.dev/fault"
	"sandpit.dev/image/oci"
	"sandpit.dev/internal/dockerd/dockerdtest"
	"sandpit.dev/runtime/docker/engineapi"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/store/sqlstore"
)

// adminToken is that of the servers of tests.
const adminToken = "an-admin-token-of-a-test"

// small is an archive of an image that has next to nothing: the agent comes with the container.
func small(t *testing.T) io.Reader {
	t.Helper()
	dir := t.TempDir()
	at := time.Unix(0, 0) // of the whole tree: the image is the same each time
	if err := errors.Join(os.WriteFile(dir+"/file", []byte("of the image"), 0o644), os.Chtimes(dir+"/file", at, at), os.Chtimes(dir, at, at)); err != nil {
		t.Fatal(err)
	}
	made, err := oci.Save(t.Context(), oci.Rootfs{Dir: dir, Reference: "sandpit.test/small:1"})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := made.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// works holds that a server makes sandboxes by default in containers.
func works(t *testing.T, url string) (*client.Client, *v1.Sandbox) {
	t.Helper()
	c := client.New(url, adminToken, client.Options{})
	info, err := c.Info(t.Context())
	if err != nil || info.Runtime != "docker" || len(info.Runtimes) != 1 || info.Runtimes[0].Error != "" || !info.Runtimes[0].Capabilities["pause"].Supported {
		t.Fatalf("the server says %+v, %v", info, err)
	}
	if _, err := c.ImportImages(t.Context(), small(t), client.ImportImageOptions{Name: "sandpit.test/small:1"}); err != nil {
		t.Fatal(err)
	}
	s, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: new("sandpit.test/small:1")})
	if err != nil || s.Runtime != "docker" {
		t.Fatalf("got %+v, %v", s, err)
	}
	if s.DiskMB == 0 {
		t.Error("the default limit of the disk is not in the record")
	}
	if _, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: new("sandpit.test/small:1"), DiskMB: new(64)}); fault.Of(err) != fault.Unsupported || fault.As(err).Remedy == "" {
		t.Errorf("a limit of the disk that nobody holds: %v", err)
	}
	if _, err := c.Update(t.Context(), s.ID, v1.UpdateSandbox{DiskMB: new(64)}); fault.Of(err) != fault.Unsupported {
		t.Errorf("such a limit for a sandbox that is there: %v", err)
	}
	if _, err := c.Update(t.Context(), s.ID, v1.UpdateSandbox{DiskMB: new(s.DiskMB)}); err != nil {
		t.Errorf("the limit that it has: %v", err)
	}
	res, err := c.Exec(t.Context(), s.ID, v1.Exec{Argv: []string{"/.sandpit/agent/sandpit-agent", "relay", "/none"}})
	if err != nil || res.ExitCode == nil || *res.ExitCode == 0 {
		t.Errorf("its command says %+v, %v", res, err)
	}
	return c, s
}

// A server whose configuration names docker alone opens no other runtime, and doctor asks that one.
func TestAServerOfAnEngineAlone(t *testing.T) {
	i := newInstallation(t)
	h := dockerdtest.New(t)
	i.cfg.Names, i.cfg.Docker.Host, i.cfg.AdminToken = []string{"docker"}, "unix://"+h.Socket(), adminToken
	i.must(i.cfg.Check())
	url, stop, err := i.start(Adopt{})
	i.must(err)
	ended := sync.OnceFunc(stop)
	t.Cleanup(ended)
	_, s := works(t, url)
	ended()
	if _, err := os.Lstat(filepath.Join(i.cfg.Data, "native")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the native runtime has a directory: %v", err)
	}

	checks := Doctor(t.Context(), i.cfg, true)
	checkOf(t, checks, "docker/pause")
	for _, c := range checks {
		if c.Name == "root" || c.Name == "namespaces" || strings.HasPrefix(c.Name, "native") {
			t.Errorf("doctor asks for what it does not need: %+v", c)
		}
	}
	if got := Repair(t.Context(), i.cfg, true); slices.ContainsFunc(got, func(c Check) bool { return c.Status != Passed || c.Done != "" }) {
		t.Errorf("nothing is wrong, and it says %+v", got)
	}
	// A container that runs by newer records than those that are there is taken down.
	db, err := sqlstore.Open(t.Context(), sqlstore.Options{Path: filepath.Join(i.cfg.Data, dbFile)})
	i.must(err)
	i.must(db.Update(t.Context(), func(tx store.Tx) error {
		box, err := tx.Sandboxes().Get(sandbox.ID(s.ID))
		if err != nil {
			return err
		}
		box.State, box.StopCause, box.StoppedAt, box.RunningSince = sandbox.Stopped, sandbox.CauseUser, time.Now().UTC(), time.Time{}
		return tx.Sandboxes().Update(box)
	}))
	i.must(db.Close())
	got := Repair(t.Context(), i.cfg, true)
	if c := checkOf(t, got, "docker/sandbox "+s.ID); c.Status != Passed || c.Done != "it was stopped" || !strings.Contains(c.Detail, "stopped in the records") {
		t.Errorf("a container that runs, and should not: %+v", got)
	}
	if got := Repair(t.Context(), i.cfg, true); slices.ContainsFunc(got, func(c Check) bool { return c.Status != Passed || c.Done != "" }) {
		t.Errorf("it was stopped, and it says %+v", got)
	}

	// The next server has it again, and the Engine loses its copy of an image that is deleted with all that uses it.
	url, stop, err = i.start(Adopt{})
	i.must(err)
	defer stop()
	c := client.New(url, adminToken, client.Options{})
	engine, err := engineapi.Find(t.Context(), engineapi.Environment{Host: i.cfg.Docker.Host})
	i.must(err)
	defer engine.Close()
	list, err := engine.ListContainers(t.Context(), "dev.sandpit.sandbox="+s.ID)
	i.must(err)
	copied := func() int {
		t.Helper()
		list, err := engine.ListImages(t.Context(), "dev.sandpit.image="+s.Digest)
		i.must(err)
		return len(list)
	}
	if _, err := c.DeleteImage(t.Context(), "sandpit.test/small:1", client.DeleteImage{}); fault.Of(err) != fault.Conflict || copied() != 1 {
		t.Errorf("an image in use is deleted: %v; copies: %d", err, copied())
	}
	// A stranger's container of it keeps the copy, and no deletion fails for that.
	stranger, err := engine.CreateContainer(t.Context(), engineapi.Container{Name: "stranger", Config: engineapi.Config{Image: list[0].ImageID, Cmd: []string{"none"}}})
	i.must(err)
	i.must(c.Delete(t.Context(), s.ID))
	i.must(errOf(c.DeleteImage(t.Context(), "sandpit.test/small:1", client.DeleteImage{})))
	if copied() != 1 {
		t.Error("the image of a stranger's container is gone")
	}
	i.must(engine.RemoveContainer(t.Context(), stranger))
	again, err := c.ImportImages(t.Context(), small(t), client.ImportImageOptions{Name: "sandpit.test/small:1"})
	i.must(err)
	if again[0].Digest != s.Digest {
		t.Fatalf("the image is another: %+v, want %s", again, s.Digest)
	}
	i.must(errOf(c.DeleteImage(t.Context(), "sandpit.test/small:1", client.DeleteImage{})))
	if copied() != 0 {
		t.Error("the Engine keeps an image that nobody has")
	}
}

// An image that the Engine has is used by its reference, by the server's own administrator; what there is
// not, or not for this machine, is told.
func TestImagesOfTheEngine(t *testing.T) {
	i := newInstallation(t)
	h := dockerdtest.New(t)
	i.cfg.Names, i.cfg.Docker.Host, i.cfg.AdminToken = []string{"docker"}, "unix://"+h.Socket(), adminToken
	i.must(i.cfg.Check())
	engine, err := engineapi.Find(t.Context(), engineapi.Environment{Host: i.cfg.Docker.Host})
	i.must(err)
	defer engine.Close()
	i.must(engine.LoadImage(t.Context(), small(t)))
	i.must(engine.LoadImage(t.Context(), ofAnotherMachine(t, "sandpit.test/foreign:1")))
	url, stop, err := i.start(Adopt{})
	i.must(err)
	defer stop()
	c := client.New(url, adminToken, client.Options{})
	for name, want := range map[string]fault.Code{
		"sandpit.invalid/none:1": fault.Unavailable, "sandpit.test/foreign:1": fault.Unsupported, "none": fault.NotFound,
	} {
		if _, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: &name}); fault.Of(err) != want || fault.As(err).Remedy == "" {
			t.Errorf("%s: %v (%s; %s), want %s", name, err, fault.Of(err), fault.As(err).Remedy, want)
		}
	}
	made, err := c.CreateToken(t.Context(), v1.CreateToken{Name: "other", Project: new("other"), Scopes: []string{"admin"}})
	i.must(err)
	if _, _, err := client.New(url, made.Secret, client.Options{}).Create(t.Context(), v1.CreateSandbox{Image: new("sandpit.test/small:1")}); fault.Of(err) != fault.NotFound {
		t.Errorf("a project took an image of the Engine: %v", err)
	}
	s, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: new("sandpit.test/small:1")})
	i.must(err)
	if !strings.HasPrefix(s.Digest, "sha256:") || s.Image != "sandpit.test/small:1" {
		t.Errorf("it is of %q, %q", s.Image, s.Digest)
	}
	i.must(c.WriteFile(t.Context(), s.ID, "/workspace/file", strings.NewReader("the user's"), client.WriteOptions{}))
	// An image that a server loaded into the Engine is not taken from it by its name there.
	ours := "localhost/sandpit/image:" + strings.TrimPrefix(s.Digest, "sha256:")
	if _, _, err := c.Create(t.Context(), v1.CreateSandbox{Image: &ours}); fault.Of(err) != fault.NotFound {
		t.Errorf("an image of ours by its name: %v", err)
	}
	pulledByTheEngine(t, h, c)
}

// ofAnotherMachine is an archive of an image for another architecture.
func ofAnotherMachine(t *testing.T, name string) io.Reader {
	t.Helper()
	const arch = "s390x"
	layer := make([]byte, 1024) // the end of a tar archive
	files := [][2]string{
		{"layer.tar", string(layer)},
		{"config.json", fmt.Sprintf(`{"architecture":%q,"os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%x"]}}`, arch, sha256.Sum256(layer))},
		{"manifest.json", fmt.Sprintf(`[{"Config":"config.json","RepoTags":[%q],"Layers":["layer.tar"]}]`, name)},
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

// A server of any user needs no right but that on the Engine's socket.
func TestAServerOfAnEngineNeedsNoRoot(t *testing.T) {
	const nobody = 65534
	if dir := os.Getenv("SANDPIT_TEST_SERVE"); dir != "" {
		serveUntilInputEnds(t, dir, os.Getenv("SANDPIT_TEST_ENGINE"))
		return
	}
	h := dockerdtest.New(t)
	dir, err := os.MkdirTemp("", "alone-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.WriteFile(dir+"/test", program, 0o755), os.Mkdir(dir+"/data", 0o700), os.Chown(dir+"/data", nobody, nobody),
			os.Chmod(dir, 0o755), os.Chmod(h.Dir, 0o711), os.Chown(h.Socket(), nobody, nobody))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), dir+"/test", "-test.run=^TestAServerOfAnEngineNeedsNoRoot$", "-test.v")
	cmd.Env = append(os.Environ(), "SANDPIT_TEST_SERVE="+dir+"/data", "SANDPIT_TEST_ENGINE=unix://"+h.Socket(), "HOME="+dir)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var url string
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		t.Log(lines.Text())
		_, url, _ = strings.Cut(lines.Text(), "ready at ")
	}
	if url == "" {
		t.Fatalf("the server did not start: %v", cmd.Wait())
	}
	c, s := works(t, url)
	if err := errors.Join(errOf(c.Stop(t.Context(), s.ID)), errOf(c.Start(t.Context(), s.ID)), c.Delete(t.Context(), s.ID)); err != nil {
		t.Error(err)
	}
	_ = in.Close()
	for lines.Scan() {
		t.Log(lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// serveUntilInputEnds is a server in a process of its own.
func serveUntilInputEnds(t *testing.T, data, engine string) {
	cfg := DefaultConfig()
	cfg.Listen, cfg.Data, cfg.RunDir, cfg.PrebuildImage, cfg.Pools = "127.0.0.1:0", data, data+"/run", false, nil
	cfg.Names, cfg.Docker.Host, cfg.AdminToken = []string{"docker"}, engine, adminToken
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err := Run(ctx, cfg, Options{Log: os.Stderr, Ready: func(url string) { _, _ = os.Stdout.WriteString("ready at " + url + "\n") }})
	if err != nil {
		t.Errorf("%v (%s)", err, fault.As(err).Remedy)
	}
	if c := checkOf(t, Doctor(t.Context(), cfg, true), "docker/pause"); c.Status != Passed {
		t.Errorf("doctor says %+v", c)
	}
	if got := Repair(t.Context(), cfg, true); slices.ContainsFunc(got, func(c Check) bool { return c.Status == Failed }) {
		t.Errorf("nothing is wrong, and it says %+v", got)
	}
}

// Without an Engine a server that has another runtime starts, says so, and has it as soon as it comes; a
// server that has none does not start.
func TestAServerWhoseEngineIsAway(t *testing.T) {
	i := newInstallation(t)
	h := dockerdtest.New(t)
	h.Stop()
	i.cfg.Names, i.cfg.Docker.Host, i.cfg.AdminToken = []string{"docker"}, "unix://"+h.Socket(), adminToken
	i.must(i.cfg.Check())
	if _, stop, err := i.start(Adopt{}); fault.Of(err) != fault.Unavailable || fault.As(err).Remedy == "" {
		if err == nil {
			stop()
		}
		t.Errorf("a server of an Engine that is away: %v", err)
	}
	i.cfg.Names = []string{"docker", "native"}
	url, stop, err := i.start(Adopt{})
	i.must(err)
	defer stop()
	c := client.New(url, adminToken, client.Options{})
	info, err := c.Info(t.Context())
	i.must(err)
	of := func(name string) v1.Runtime {
		at := slices.IndexFunc(info.Runtimes, func(r v1.Runtime) bool { return r.Name == name })
		if at < 0 {
			t.Fatalf("the server says nothing of %s: %+v", name, info)
		}
		return info.Runtimes[at]
	}
	if of("docker").Error == "" || of("native").Error != "" {
		t.Errorf("it says %+v", info.Runtimes)
	}
	_, err = c.ImportImages(t.Context(), small(t), client.ImportImageOptions{Name: "sandpit.test/small:1"})
	i.must(err)
	create := v1.CreateSandbox{Image: new("sandpit.test/small:1")}
	if _, _, err = c.Create(t.Context(), create); fault.Of(err) != fault.Unavailable || fault.As(err).Remedy == "" {
		t.Errorf("a create without the Engine: %v", err)
	}
	h.Start()
	s, _, err := c.Create(t.Context(), create)
	i.must(err)
	if s.Runtime != "docker" || s.Status != "running" {
		t.Errorf("it is %+v", s)
	}
	// Its end is heard of, too.
	engine, err := engineapi.Find(t.Context(), engineapi.Environment{Host: i.cfg.Docker.Host})
	i.must(err)
	defer engine.Close()
	list, err := engine.ListContainers(t.Context(), "dev.sandpit.sandbox="+s.ID)
	i.must(err)
	i.must(engine.KillContainer(t.Context(), list[0].ID))
	limit, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for s.Status == "running" {
		if s, err = c.Get(limit, s.ID); err != nil {
			t.Fatal(err)
		}
	}
	if s.StopCause != "killed" {
		t.Errorf("a container that was killed is told as %+v", s)
	}
	i.must(c.Delete(t.Context(), s.ID))
}

func errOf[T any](_ T, err error) error { return err }
