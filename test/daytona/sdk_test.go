// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytona

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sandpit.dev/internal/packagestest"
	"sandpit.dev/test/servertest"
)

const (
	startBound  = time.Minute     // of an answer that is waited for: far more than it takes
	scriptBound = 5 * time.Minute // likewise of a script
)

// program is where TestMain put the server's.
var program string

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
	if program, err = servertest.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// serve starts a server, and returns the environment of its clients. It ends with the test.
func serve(t *testing.T) (env []string) {
	t.Helper()
	return clients(servertest.Start(t, program))
}

// clients returns the environment of a server's clients.
func clients(s *servertest.Server) (env []string) {
	return append(slices.Clone(s.Env), "DAYTONA_API_URL="+s.Address+"/daytona", "DAYTONA_API_KEY="+s.Token)
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
	files := []string{"package-lock.json", "older/package-lock.json", "requirements.txt"}
	for _, name := range []string{"*/*/requirements.txt", "*/*/package-lock.json"} {
		more, err := filepath.Glob(name)
		if err != nil || len(more) == 0 {
			t.Fatal(name, more, err)
		}
		files = append(files, more...)
	}
	for _, file := range files {
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
