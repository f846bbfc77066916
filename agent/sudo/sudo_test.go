// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sudo_test

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sandpit.dev/agent/sudo"
)

func TestACommandLineMeansWhatItMeansToSudo(t *testing.T) {
	for line, want := range map[string]sudo.Request{
		"id":                       {Argv: []string{"id"}},
		"-u bob id -u":             {User: "bob", Argv: []string{"id", "-u"}},
		"-ubob -nEH id":            {User: "bob", AllEnv: true, Argv: []string{"id"}},
		"-nu bob id":               {User: "bob", Argv: []string{"id"}},
		"--user=bob -- -x":         {User: "bob", Argv: []string{"-x"}},
		"--user bob id":            {User: "bob", Argv: []string{"id"}},
		"A=1 B=2 id C=3":           {Set: []string{"A=1", "B=2"}, Argv: []string{"id", "C=3"}},
		"-E -- A=1 id":             {AllEnv: true, Set: []string{"A=1"}, Argv: []string{"id"}},
		"-i":                       {Login: true, Argv: []string{}},
		"-s echo x":                {Shell: true, Argv: []string{"echo", "x"}},
		"-k id":                    {Argv: []string{"id"}},
		"-v":                       {Action: sudo.Validate, Argv: []string{}},
		"-l apt-get install":       {Action: sudo.Validate, Argv: []string{"apt-get", "install"}},
		"-S -p prompt: id":         {Argv: []string{"id"}},
		"1=2 id":                   {Argv: []string{"1=2", "id"}},
		"--preserve-env=A,B -n id": {Argv: []string{"id"}},
	} {
		got, err := sudo.Parse(strings.Fields(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if !reflect.DeepEqual(got.Request, want) {
			t.Errorf("%s: %+v, want %+v", line, got.Request, want)
		}
	}
	for _, line := range []string{"", "-u", "-i -s", "-g wheel id", "-x id", "--nothing id", "-v id", "-v -l", "-l -i", "-n", "A=1", "-e file", "--login=yes"} {
		if got, err := sudo.Parse(strings.Fields(line)); err == nil {
			t.Errorf("%q: %+v, want an error", line, got)
		}
	}
}

func TestRequestsAreReadAsTheyWereWritten(t *testing.T) {
	for _, r := range []sudo.Request{
		{Cwd: "/", Argv: []string{"a", "", "\xff"}, Set: []string{"A=1"}, Env: []string{"B=\n", "C="}, Terminal: 7, Cols: 80, Rows: 24},
		{User: "#1", Login: true, AllEnv: true}, {Shell: true, Action: sudo.Validate},
	} {
		got, err := sudo.Read(bytes.NewReader(r.Encode()))
		if err != nil || !reflect.DeepEqual(*got, r) {
			t.Errorf("%+v, %v, want %+v", got, err, r)
		}
	}
	long := strings.Repeat("x", sudo.MaxEnvBytes)
	for words, r := range map[string]sudo.Request{
		"bytes of arguments": {Argv: []string{long}}, "leave -E out": {Env: []string{"A=" + long}}, "user's name": {User: long[:300]}, "directory's path": {Cwd: long[:5000]},
	} {
		if err := r.Check(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
}

func FuzzRead(f *testing.F) {
	r := sudo.Request{User: "u", Cwd: "/x", Argv: []string{"a", "b"}, Env: []string{"A=1"}}
	f.Add(r.Encode())
	f.Add([]byte("sud1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := sudo.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := sudo.Read(bytes.NewReader(got.Encode()))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%+v, then %+v, %v", got, again, err)
		}
	})
}

func TestWhatPassesOfAnEnvironment(t *testing.T) {
	r := sudo.Request{
		Env: []string{"TERM=xterm", "LANG=../../x", "LC_ALL=C.UTF-8", "TZ=Europe/Berlin", "OWN=1", "HOME=/home/sandbox", "PATH=/x", "LD_PRELOAD=x", "PYTHONUNBUFFERED=1", "F=() { x; }", "http_proxy=p"},
		Set: []string{"OWN=2", "HOME=/h"},
	}
	base := []string{"PATH=/bin", "HOME=/root"}
	for all, want := range map[bool][]string{
		false: {"HOME=/h", "LC_ALL=C.UTF-8", "OWN=2", "PATH=/bin", "TERM=xterm", "TZ=Europe/Berlin", "http_proxy=p"},
		true:  {"HOME=/h", "LC_ALL=C.UTF-8", "OWN=2", "PATH=/bin", "PYTHONUNBUFFERED=1", "TERM=xterm", "TZ=Europe/Berlin", "http_proxy=p"},
	} {
		r.AllEnv = all
		if env, refused := r.Environment(base); !slices.Equal(env, want) || refused != nil {
			t.Errorf("%q, %q refused, want %q", env, refused, want)
		}
	}
	r.Set = []string{"LD_PRELOAD=x", "X=() { :; }", "OWN=1"}
	if _, refused := r.Environment(base); !slices.Equal(refused, []string{"LD_PRELOAD", "X"}) {
		t.Errorf("%q are refused", refused)
	}
}

func TestACommandForAShellIsOneWordEach(t *testing.T) {
	if got := sudo.Script([]string{"echo", "a b", "$HOME", "", "x;y", "l\n"}); got != `echo a\ b $HOME '' x\;y l'`+"\n'" {
		t.Errorf("%s", got)
	}
}
