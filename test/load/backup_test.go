// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"bytes"
	"context"
	"encoding/json"
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
	"sandpit.dev/internal/leaktest"
)

// makeTree makes files that are easily lost or changed in a copy, in the directory $D.
const makeTree = `set -e; cd "$D"; mkdir -p names/deep/er
printf one > names/one; ln names/one names/deep/two; ln names/one 'names/.wh.three'
printf plain > '.wh.file'; printf opaque > names/.wh..wh..opq; mkdir .wh.dir; printf in > .wh.dir/.wh..wh.in
printf x > 'a b'; printf y > "$(printf 'new\nline')"; printf z > 'ä=ö'; printf '' > empty; ln -s /etc/passwd link; ln -s ../../../../../up up
truncate -s 1T holes; printf begin | dd of=holes conv=notrunc status=none; printf end | dd of=holes bs=1 seek=1000000000 conv=notrunc status=none
mkfifo pipe; chmod 4755 'a b'; chmod 600 names; chmod 700 names; touch -d @1234567890 names/one
python3 -c 'import os; os.setxattr("empty", "user.kind", b"none")'`

// sumTree says all of them.
const sumTree = `cd "$D"; find . -mindepth 1 ! -name holes -printf '%P|%y|%m|%U:%G|%n|%l|%T@|%s\n' | sed 's/\(|[^|d][^|]*|.*|\)/\1/' | grep -v '|d|' | sort
find . -type f ! -name holes -exec sha256sum {} + | sort; stat -c '%s' holes; tail -c +1 holes | head -c 5; tail -c +1000000001 holes | head -c 3
test "$(stat -c %b holes)" -lt 1000 && echo sparse; test names/one -ef names/deep/two && test names/one -ef names/.wh.three && echo linked
python3 -c 'import os; print(os.getxattr("empty", "user.kind"))'`

// sandpit runs the program against the host's server.
func (h *host) sandpit(ctx context.Context, args ...string) (string, error) {
	path, err := h.build()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SANDPIT_") }),
		"SANDPIT_URL="+h.url, "SANDPIT_TOKEN="+h.token)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// beside returns a host of the same token whose data directory is not there yet.
func (h *host) beside() *host {
	h.t.Helper()
	dir, err := filepath.EvalSymlinks(h.t.TempDir())
	if err != nil {
		h.t.Fatal(err)
	}
	c := &host{t: h.t, listen: h.listen, build: h.build, dir: dir, images: h.images, token: h.token}
	if c.empty, err = leaktest.Take(leaktest.Scope{Dir: filepath.Join(dir, "data"), Marks: c.marks}); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.sweep)
	return c
}

// output is what a command says in a sandbox.
func (h *host) output(ctx context.Context, ref, command string, env map[string]string) string {
	h.t.Helper()
	r, err := h.client.Exec(ctx, ref, v1.Exec{Command: &command, Env: env})
	if err != nil {
		h.t.Fatalf("%s: %v", ref, err)
	}
	if r.ExitCode == nil || *r.ExitCode != 0 {
		h.t.Fatalf("%s: %s: %q, %q", ref, code(r.ExitCode), r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// TestABackupOfARunningServer makes a backup under load: the server that is restored from it has
// every disk, and of each at least what its records say.
func TestABackupOfARunningServer(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, err := h.client.CreateVolume(ctx, v1.CreateVolume{Name: "data"}); err != nil {
		t.Fatal(err)
	}
	for key, volumes := range map[string][]v1.MountVolume{"runs": nil, "stopped": nil, "paused": nil, "counts": nil, "mounts": {{Volume: "data", Path: "/data"}}, "archived": nil} {
		if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new(key), Volumes: volumes}); err != nil {
			t.Fatal(err)
		}
	}
	trees := map[string]map[string]string{"runs": {"D": "/workspace/tree"}, "stopped": {"D": "/workspace/tree"}, "paused": {"D": "/workspace/tree"}, "archived": {"D": "/workspace/tree"}, "mounts": {"D": "/data"}}
	sums := make(map[string]string)
	for key, env := range trees {
		h.output(ctx, key, `mkdir -p "$D"`, env)
		h.output(ctx, key, makeTree, env)
		sums[key] = h.output(ctx, key, sumTree, env)
	}
	for _, want := range []string{".wh.file|", "sparse\n", "linked\n", "b'none'"} {
		if !strings.Contains(sums["mounts"], want) {
			t.Fatalf("the sums of the files lack %q:\n%s", want, sums["mounts"])
		}
	}
	// What was deleted of the image stays deleted, and a directory that was made anew is empty.
	as := "root"
	for _, command := range []string{"rm /etc/hostname && rm -r /usr/share/doc && mkdir /usr/share/doc"} {
		if _, err := h.client.Exec(ctx, "stopped", v1.Exec{Command: &command, User: &as}); err != nil {
			t.Fatal(err)
		}
	}
	gone := h.output(ctx, "stopped", "ls -A /usr/share/doc; test ! -e /etc/hostname && echo gone", nil)
	if _, err := h.client.Snapshot(ctx, "stopped", v1.CreateSnapshot{Name: new("snap")}); err != nil {
		t.Fatal(err)
	}
	away, err := h.client.Snapshot(ctx, "stopped", v1.CreateSnapshot{Name: new("away")})
	if err != nil {
		t.Fatal(err)
	}
	if away, err = h.client.ArchiveSnapshot(ctx, away.ID); err != nil || away.Status != "archived" {
		t.Fatalf("the archived snapshot is %+v, %v", away, err)
	}
	h.output(ctx, "stopped", "echo later > later", nil)
	if _, err := h.client.SetSecret(ctx, "stopped", "WORD", v1.SetSecret{Value: "the word of it"}); err != nil {
		t.Fatal(err)
	}
	text := "mkdir -p /artifacts/sub && echo result > '/artifacts/sub/a file'; true"
	run, err := h.client.StartRun(ctx, "stopped", v1.StartRun{Commands: []v1.RunCommandSpec{{Shell: &text}}, WaitSeconds: new(30.0)})
	if err != nil || len(run.Artifacts) != 1 {
		t.Fatalf("the run has %+v, %v", run, err)
	}
	if _, err := h.client.Stop(ctx, "stopped"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Pause(ctx, "paused"); err != nil {
		t.Fatal(err)
	}
	const skill = "---\nname: pdf\ndescription: Reads PDF files.\n---\nhow\n"
	kept, err := h.client.UploadSkill(ctx, strings.NewReader(skill), int64(len(skill)))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := h.client.InstallSkills(ctx, "archived", []string{"pdf"}); err != nil || len(got.Installed) != 1 {
		t.Fatalf("the installation: %+v, %v", got, err)
	}
	if _, err := h.client.Stop(ctx, "archived"); err != nil {
		t.Fatal(err)
	}
	if _, err := h.client.Archive(ctx, "archived"); err != nil {
		t.Fatal(err)
	}
	// One writes: a is never more than one ahead of b, and never behind it.
	writes := `i=0; while :; do i=$((i+1)); echo $i > a.new; mv a.new a; echo $i > b.new; mv b.new b; done`
	writer, err := h.client.StartProcess(ctx, "runs", v1.StartProcess{Command: &writes})
	if err != nil {
		t.Fatal(err)
	}
	token, err := h.client.CreateToken(ctx, v1.CreateToken{Name: "its own", Scopes: []string{"admin"}})
	if err != nil {
		t.Fatal(err)
	}
	// Others write, come and go during the backup.
	load, end := context.WithCancel(ctx)
	var busy sync.WaitGroup
	defer busy.Wait()
	defer end()
	busy.Go(func() {
		for load.Err() == nil {
			if err := h.says(load, "counts", "echo line >> lines", ""); err != nil && load.Err() == nil {
				t.Error(err)
			}
		}
	})
	busy.Go(func() {
		for n := 0; load.Err() == nil; n++ {
			key := fmt.Sprintf("load-%d", n)
			_, _, err := h.client.Create(load, v1.CreateSandbox{Key: &key})
			if err == nil {
				err = h.says(load, key, "echo "+key+" > file", "")
			}
			if err == nil && n%2 == 0 {
				err = h.client.Delete(load, key)
			}
			if err != nil && load.Err() == nil {
				t.Error(err)
			}
		}
	})
	file := filepath.Join(h.dir, "backup.tar")
	for range 2 { // the second over the first
		if out, err := h.sandpit(ctx, "backup", file); err != nil {
			t.Fatalf("backup: %v: %s", err, out)
		}
	}
	end()
	busy.Wait()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want it for its owner alone", info.Mode(), err)
	}
	if p, err := h.client.Process(ctx, "runs", writer.ID()); err != nil || p.Status != "running" {
		t.Errorf("the writer is %+v, %v; want it to go on", p, err)
	}
	other := client.New(h.url, token.Secret, client.Options{HTTP: h.http})
	if r, err := other.Backup(ctx); err == nil {
		_ = r.Close()
		t.Error("a token of a project got a backup of all")
	}
	snaps, err := h.client.SnapshotsPage(ctx, client.SnapshotQuery{})
	if err != nil || snaps.Total != 2 {
		t.Errorf("there are %+v, %v; want nothing left of the backup beside the two snapshots", snaps, err)
	}

	c := h.beside()
	data := filepath.Join(c.dir, "data")
	if out, err := h.sandpit(ctx, "restore", file, "--data", data); err != nil {
		t.Fatalf("restore: %v: %s", err, out)
	}
	if out, err := h.sandpit(ctx, "restore", file, "--data", data); err == nil || !strings.Contains(out, "not empty") {
		t.Errorf("a second restore into the directory: %v: %s", err, out)
	}
	ids := make(map[string]bool)
	for _, dir := range []string{h.dir, c.dir} {
		b, err := os.ReadFile(filepath.Join(dir, "data", "id.json"))
		if err != nil {
			t.Fatal(err)
		}
		var id struct{ ID, Namespace string }
		if err := json.Unmarshal(b, &id); err != nil || ids[id.ID] || ids[id.Namespace] {
			t.Errorf("the id is %s, %v; want that of an installation of its own", b, err)
		}
		ids[id.ID], ids[id.Namespace] = true, true
	}
	c.start()
	for key, want := range map[string]string{"runs": "host", "paused": "host", "mounts": "host", "stopped": "user", "archived": "user"} {
		got, err := c.client.Get(ctx, key)
		if err != nil || got.Status != "stopped" || got.StopCause != want {
			t.Errorf("%s: got %+v, %v; want it stopped by %s", key, got, err, want)
		}
	}
	if k, err := c.client.Skill(ctx, "pdf"); err != nil || k.ID != kept.ID || k.Digest != kept.Digest {
		t.Errorf("the skill is %+v, %v; want %+v", k, err, kept)
	}
	if box, err := h.client.Get(ctx, "archived"); err != nil || box.Status != "archived" {
		t.Errorf("in the server that was backed up: %+v, %v; want it archived still", box, err)
	}
	if p, err := c.client.Process(ctx, "runs", writer.ID()); err != nil || p.Status == "running" {
		t.Errorf("the writer is %+v, %v; want it cut off", p, err)
	}
	counted, err := c.client.Get(ctx, "counts")
	if err != nil {
		t.Fatal(err)
	}
	for box, err := range c.client.List(ctx, client.ListQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.client.Start(ctx, box.ID); err != nil {
			t.Errorf("%s: %v", box.ID, err)
		}
	}
	for key, env := range trees {
		if got := c.output(ctx, key, sumTree, env); got != sums[key] {
			t.Errorf("%s: the files are\n%s\nwant\n%s", key, got, sums[key])
		}
	}
	if got := c.output(ctx, "stopped", "ls -A /usr/share/doc; test ! -e /etc/hostname && echo gone", nil); got != gone {
		t.Errorf("of the image there is %q, want %q", got, gone)
	}
	c.output(ctx, "runs", `a=$(cat a) b=$(cat b); test $((a-b)) = 0 || test $((a-b)) = 1`, nil)
	var lines int64
	if _, err := fmt.Sscan(c.output(ctx, "counts", "wc -l < lines", nil), &lines); err != nil || lines < counted.ExecCount {
		t.Errorf("there are %d lines of %d commands (%v)", lines, counted.ExecCount, err)
	}
	if err := c.says(ctx, "stopped", `cat later; printf %s "$WORD" | sha256sum | cut -c 1-64`, "later\n"+hashed("the word of it")+"\n"); err != nil {
		t.Error(err)
	}
	if err := c.says(ctx, "archived", "tail -n 1 skills/pdf/SKILL.md", "how\n"); err != nil {
		t.Error(err)
	}
	if got, err := c.client.InstallSkills(ctx, "archived", []string{"pdf"}); err != nil || len(got.AlreadyInstalled) != 1 {
		t.Errorf("the skill in the sandbox: %+v, %v; want it there", got, err)
	}
	for key, of := range map[string]string{"from": "stopped/snap", "from-archive": "stopped/away"} {
		if _, _, err := c.client.Create(ctx, v1.CreateSandbox{Key: &key, FromSnapshot: &of}); err != nil {
			t.Fatal(err)
		}
		if got := c.output(ctx, key, sumTree+"; test ! -e later", trees["stopped"]); got != sums["stopped"] {
			t.Errorf("the snapshot %s has\n%s\nwant\n%s", of, got, sums["stopped"])
		}
	}
	a, err := c.client.Artifact(ctx, "stopped", run.RunID, "sub/a file")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(a)
	_ = a.Close()
	if err != nil || string(b) != "result\n" {
		t.Errorf("the artifact is %q, %v", b, err)
	}
	if _, err := client.New(c.url, token.Secret, client.Options{HTTP: c.http}).Get(ctx, "runs"); err != nil {
		t.Errorf("a token of the time before: %v", err)
	}
}

// TestARestoreThatFails leaves nothing: of a file that is not whole, of a disk that is full, of a
// kill what no server takes.
func TestARestoreThatFails(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: new("box")}); err != nil {
		t.Fatal(err)
	}
	h.output(ctx, "box", "head -c 64M /dev/urandom > large", nil)
	file := filepath.Join(h.dir, "backup.tar")
	if out, err := h.sandpit(ctx, "backup", file); err != nil {
		t.Fatalf("backup: %v: %s", err, out)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	small := filepath.Join(h.dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=48M,mode=0700"); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Unmount(small, 0) }()
	left := func(dir string) {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) || len(entries) > 0 {
			t.Errorf("%s has %v, %v; want nothing left", dir, entries, err)
		}
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, b := range map[string][]byte{"half": whole[:len(whole)/2], "without its end": whole[:len(whole)-4096], "empty": nil, "changed": flipped} {
		path, dir := filepath.Join(h.dir, "bad.tar"), filepath.Join(h.dir, "bad")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := h.sandpit(ctx, "restore", path, "--data", dir); err == nil || !strings.Contains(out, "backup") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the directory is there (%v)", name, err)
		}
	}
	if out, err := h.sandpit(ctx, "restore", file, "--data", filepath.Join(small)); err == nil || !strings.Contains(out, "MB are free") {
		t.Errorf("into a full disk: %v: %s", err, out)
	}
	left(small)
	if out, err := h.sandpit(ctx, "backup", filepath.Join(small, "file.tar")); err == nil || !strings.Contains(out, "no space left") {
		t.Errorf("to a full disk: %v: %s", err, out)
	}
	left(small)

	half := filepath.Join(h.dir, "half")
	if err := os.Mkdir(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "restoring"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := h.sandpit(ctx, "serve", "--listen", "127.0.0.1:0", "--data", half); err == nil || !strings.Contains(out, "cut off") {
		t.Errorf("a server on half of a restore: %v: %s", err, out)
	}
}

// TestABackupLeavesOutOneDisk is one whose files share what they hold, and would fill any backup;
// a server that is killed while it makes one has nothing left of it afterwards.
func TestABackupLeavesOutOneDisk(t *testing.T) {
	h := open(t)
	ctx := t.Context()
	for _, key := range []string{"good", "bad"} {
		if _, _, err := h.client.Create(ctx, v1.CreateSandbox{Key: &key, DiskMB: new(128)}); err != nil {
			t.Fatal(err)
		}
	}
	h.output(ctx, "good", "echo content > file", nil)
	fill := "head -c 60M /dev/urandom > f && for i in $(seq 40); do cp --reflink=always f f$i || exit; done"
	if r, err := h.client.Exec(ctx, "bad", v1.Exec{Command: &fill}); err != nil || r.ExitCode == nil || *r.ExitCode != 0 {
		t.Skip("files cannot share what they hold here")
	}
	file := filepath.Join(h.dir, "backup.tar")
	const left = "left out: sandboxes/"
	if out, err := h.sandpit(ctx, "backup", file); err == nil || !strings.Contains(out, left) {
		t.Fatalf("backup: %v: %s", err, out)
	}
	ended := make(chan string, 1)
	go func() {
		out, _ := h.sandpit(ctx, "backup", filepath.Join(h.dir, "other.tar"))
		ended <- out
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for begun := false; !begun; {
		select {
		case <-tick.C:
		case out := <-ended:
			t.Fatalf("the backup ended before the server: %s", out)
		}
		parts, _ := filepath.Glob(filepath.Join(h.dir, ".sandpit-backup-*"))
		for _, p := range parts {
			info, err := os.Stat(p)
			begun = err == nil && info.Size() > 64<<20
		}
	}
	h.kill()
	if out := <-ended; !strings.Contains(out, "broke off") {
		t.Errorf("a backup whose server was killed: %s", out)
	}
	if parts, _ := filepath.Glob(filepath.Join(h.dir, ".sandpit-backup-*")); len(parts) > 0 {
		t.Errorf("there is left %q", parts)
	}
	h.start()
	if _, err := os.Stat(filepath.Join(h.dir, "data", "backup.db")); !os.IsNotExist(err) {
		t.Errorf("the copy of the records is left (%v)", err)
	}
	c := h.beside()
	if out, err := h.sandpit(ctx, "restore", file, "--data", filepath.Join(c.dir, "data")); err != nil || !strings.Contains(out, "not in the backup: sandboxes/") {
		t.Fatalf("restore: %v: %s", err, out)
	}
	c.start()
	page, err := c.client.ListPage(ctx, client.ListQuery{})
	if err != nil || page.Total != 1 {
		t.Fatalf("there are %+v, %v; want the one that is whole", page, err)
	}
	if _, err := c.client.Start(ctx, "good"); err != nil {
		t.Fatal(err)
	}
	if err := c.says(ctx, "good", "cat file", "content\n"); err != nil {
		t.Error(err)
	}
}
