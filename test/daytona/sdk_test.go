// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sandpit.dev/image/imagetest"
	"sandpit.dev/internal/packagestest"
	"sandpit.dev/internal/skiptest"
)

const (
	startBound  = time.Minute     // of a server to be ready: far more than it takes
	scriptBound = 5 * time.Minute // likewise of a script
)

// bin is where TestMain put the program.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if flag.Parse(); testing.Short() {
		return m.Run() // what needs the program skips itself, with the reason
	}
	dir, err := os.MkdirTemp("", "sandpit-daytona-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0.0.0-script", "-o", dir+"/", "./cmd/sandpit")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build sandpit: %v\n%s", err, out)
		return 1
	}
	bin = dir
	return m.Run()
}

// server is one that ends with its test.
type server struct {
	t   *testing.T
	dir string
	env []string // of its commands
	cmd *exec.Cmd
	log bytes.Buffer
}

// serve starts a server, and returns the environment of its clients. It ends with the test.
func serve(t *testing.T) (env []string) {
	t.Helper()
	need(t)
	imagetest.Python(t)
	return launch(t, imagetest.Dir(t)).clients()
}

// need skips a test where its server cannot be.
func need(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("-short leaves out what pip and npm may have to fetch")
	}
	skiptest.WithoutRoot(t, "the native runtime does")
}

// launch returns a server that is not started yet, with a directory of images.
func launch(t *testing.T, images string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	s.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "SANDPIT_RUN_DIR=" + filepath.Join(s.dir, "run"), "SANDPIT_DATA=" + filepath.Join(s.dir, "data"),
		"SANDPIT_IMAGES=" + images, "SANDPIT_LISTEN=127.0.0.1:0",
	}
	t.Cleanup(func() {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		if err := s.cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the server ended with %v; it said:\n%s", err, s.log.Bytes()[max(0, s.log.Len()-4<<10):])
		}
	})
	t.Cleanup(func() { // sandboxes outlive their server
		out, err := s.command("ls", "-a", "-q").Output()
		if err != nil {
			t.Errorf("list the sandboxes: %v", err)
		}
		if ids := strings.Fields(string(out)); len(ids) > 0 {
			if out, err := s.command(append([]string{"rm", "-f"}, ids...)...).CombinedOutput(); err != nil {
				t.Errorf("delete the sandboxes: %v\n%s", err, out)
			}
		}
	})
	return s
}

func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, "sandpit"), args...)
	cmd.Env = s.env
	return cmd
}

// clients starts it, and returns the environment of its clients.
func (s *server) clients() (env []string) {
	s.t.Helper()
	s.cmd = s.command("serve")
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	late := time.AfterFunc(startBound, func() { _ = s.cmd.Process.Kill() })
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	late.Stop()
	rest, ok := strings.CutPrefix(line, "sandpit is ready at ")
	address, _, _ := strings.Cut(rest, ";")
	token, terr := os.ReadFile(filepath.Join(s.dir, "data/admin-token"))
	if err != nil || !ok || terr != nil {
		s.t.Fatalf("the server said %q; %v, %v\n%s", line, err, terr, s.log.Bytes())
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	return append(slices.Clone(s.env), "DAYTONA_API_URL="+address+"/daytona", "DAYTONA_API_KEY="+strings.TrimSpace(string(token)))
}

// passes runs a script of a client's, which says what is wrong and fails then.
func passes(t *testing.T, cmd *exec.Cmd, env []string) {
	t.Helper()
	var out bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = append(slices.Clip(env), "PYTHONPATH=../checks", "PYTHONDONTWRITEBYTECODE=1"), &out, &out, 10*time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out.Bytes())
	}
	if n := strings.Count(out.String(), "ok "); n < 10 {
		t.Errorf("%d checks passed, too few to be all\n%s", n, out.Bytes())
	}
}

func TestPython(t *testing.T) {
	python := packagestest.NeedPip(t, "daytona-pip", ".")
	ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
	defer cancel()
	passes(t, exec.CommandContext(ctx, python, "testdata/sdk.py"), serve(t))
}

func TestTypeScript(t *testing.T) {
	p := packagestest.NeedNPM(t, "daytona-npm", ".")
	script, err := filepath.Abs("testdata/sdk.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, sdk := range []string{"@daytonaio/sdk", "@daytona/sdk"} {
		t.Run(strings.Trim(strings.ReplaceAll(sdk, "/", "-"), "@"), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), scriptBound)
			defer cancel()
			passes(t, p.Command(ctx, script), append(serve(t), "SDK="+filepath.Join(p.Dir, "node_modules", sdk)))
		})
	}
}

func TestTheLockFilesNameNoRegistry(t *testing.T) {
	files, err := filepath.Glob("*/*/requirements.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "package-lock.json", "older/package-lock.json", "requirements.txt") {
		must := map[string]string{".json": `"integrity"`, ".txt": "--hash=sha256:"}[filepath.Ext(file)]
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("://")) && filepath.Ext(file) == ".txt" || bytes.Contains(b, []byte(`"resolved"`)) {
			t.Errorf("%s says where packages are fetched from, which is for each machine to say", file)
		}
		if !bytes.Contains(b, []byte(must)) {
			t.Errorf("%s does not say what the packages are", file)
		}
	}
}
