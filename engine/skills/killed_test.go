// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package skills_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"sandpit.dev/engine"
	"sandpit.dev/engine/enginetest"
	"sandpit.dev/engine/skills"
	"sandpit.dev/internal/skiptest"
	"sandpit.dev/runtime/memory"
	"sandpit.dev/skill"
	"sandpit.dev/store/sqlstore"
)

// What the process that is to die reads from its environment.
const (
	killDir   = "SANDPIT_TEST_SKILL_DIR"
	killPoint = "SANDPIT_TEST_SKILL_POINT"
)

// killedPackage is a package of the skill that is installed, in a version.
func killedPackage(version string) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range map[string]string{"SKILL.md": "---\nname: pdf\ndescription: reads\n---\n" + version, "run.sh": "echo " + version} {
		f, err := w.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// beKilled installs a skill, and another version of it, and is killed in the second at a point.
func beKilled(dir, point string) int {
	err := install(context.Background(), dir, point)
	fmt.Fprintln(os.Stderr, "the process should have been killed at", point, err)
	return 3
}

func install(ctx context.Context, dir, point string) error {
	host, err := memory.Open(filepath.Join(dir, "host"), memory.Options{})
	if err != nil {
		return err
	}
	st, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "records.db")})
	if err != nil {
		return err
	}
	e, err := engine.New(enginetest.Options(st, host.Driver()))
	if err != nil {
		return err
	}
	go func() { _ = e.Run(ctx) }()
	if err := e.WaitReady(ctx); err != nil {
		return err
	}
	armed := false
	s := skills.New(e, skills.Options{Checkpoint: func(name string) {
		if armed && name == point {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	first, err := killedPackage("one")
	if err != nil {
		return err
	}
	k, _, err := s.AddSkill(ctx, alice, first, skill.Imported)
	if err != nil {
		return err
	}
	if _, _, err := e.Create(ctx, alice, engine.CreateRequest{Key: "box"}); err != nil {
		return err
	}
	if got, err := s.InstallSkills(ctx, alice, "box", []string{"pdf"}); err != nil || got.Err() != nil {
		return errors.Join(err, got.Err())
	}
	second, err := killedPackage("two")
	if err != nil {
		return err
	}
	if _, err := s.ReplaceSkill(ctx, alice, k.ID, second, skill.Imported); err != nil {
		return err
	}
	armed = true
	_, err = s.InstallSkills(ctx, alice, "box", []string{"pdf"})
	return err
}

// TestAServerIsKilledInAnInstallation kills a server with SIGKILL in the middle of an installation that
// replaces a skill. What is there then is the old one, the new one or none, and never a half; the next
// call makes it the new one, and leaves nothing beside it.
func TestAServerIsKilledInAnInstallation(t *testing.T) {
	skiptest.WithShort(t, "a server is killed at each step of an installation")
	t.Parallel()
	for point, there := range map[string]string{"skill.unpacked": "echo one", "skill.removed": "", "skill.there": "echo two"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), killDir+"="+dir, killPoint+"="+point)
			out, err := cmd.CombinedOutput()
			if x, ok := errors.AsType[*exec.ExitError](err); !ok || x.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("%v\n%s", err, out)
			}
			h := &house{Server: enginetest.Start(t, dir), t: t}
			h.skills = skills.New(h.Engine, skills.Options{})
			box, err := h.Engine.Start(t.Context(), alice, "box")
			if err != nil {
				t.Fatal(err)
			}
			if got := h.run(box, "if test -e skills/pdf; then cat skills/pdf/run.sh; fi"); got != there {
				t.Errorf("after the kill there is %q, want %q", got, there)
			}
			got := h.install(box, "pdf")
			if err := got.Err(); err != nil || len(got.New)+len(got.Already) != 1 {
				t.Errorf("the next call: %+v, %v", got, err)
			}
			if got := h.run(box, "sh skills/pdf/run.sh; ls -A skills"); got != "two\npdf" {
				t.Errorf("after the next call: %q", got)
			}
			if s, err := h.Engine.Get(t.Context(), alice, "box"); err != nil || len(s.Skills) != 1 {
				t.Errorf("on record: %+v, %v", s.Skills, err)
			}
		})
	}
}
