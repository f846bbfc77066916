// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
	"sandpit.dev/fault"
	"sandpit.dev/internal/servers"
)

// withServers is an app of a user who signed in to the servers box and lab, and out of old.
func withServers(t *testing.T, current string, env map[string]string) *app.App {
	t.Helper()
	home := t.TempDir()
	getenv := func(name string) string {
		switch name {
		case "HOME", "AppData":
			return home
		}
		return env[name]
	}
	path, err := servers.Path(runtime.GOOS, getenv)
	if err != nil {
		t.Fatal(err)
	}
	l := servers.List{Current: current}
	l.Put(servers.Server{Name: "box", URL: "https://box.example", Token: "box-token"})
	l.Put(servers.Server{Name: "lab", URL: "http://lab.example:8080", Token: "lab-token"})
	l.Put(servers.Server{Name: "old", URL: "https://old.example"})
	if err := l.Write(path); err != nil {
		t.Fatal(err)
	}
	return &app.App{Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{}, Finder: place.Finder{Getenv: getenv}}
}

// The flag is before the environment, which is before the kept servers; and a token goes to no
// other server than it was given for.
func TestWhichServerIsSpokenTo(t *testing.T) {
	const url, token, admin = "SANDPIT_URL", "SANDPIT_TOKEN", "SANDPIT_ADMIN_TOKEN"
	own := func(token string) place.Server { return place.Server{Token: token} }
	box := func(by place.Naming) place.Server {
		return place.Server{URL: "https://box.example", Token: "box-token", Kept: "box", By: by}
	}
	for _, c := range []struct {
		name, flag, current string
		env                 map[string]string
		want                place.Server
		code                fault.Code
	}{
		{name: "nothing", want: own("")},
		{name: "the server's own variable", env: map[string]string{admin: "a"}, want: own("a")},
		{name: "the one in use", current: "box", want: box(place.ByList)},
		{name: "the one in use, and the server's own variable", current: "box", env: map[string]string{admin: "a"}, want: box(place.ByList)},
		{name: "the one in use is signed out of", current: "old", code: fault.Unauthenticated},

		{name: "a variable", current: "box", env: map[string]string{url: "http://x", token: "t"}, want: place.Server{URL: "http://x", Token: "t", By: place.ByVariable}},
		{name: "a variable without a token", current: "box", env: map[string]string{url: "http://x"}, want: place.Server{URL: "http://x", By: place.ByVariable}},
		{name: "a variable with a kept server's address", env: map[string]string{url: "https://box.example/v1/"}, want: place.Server{URL: "https://box.example/v1/", Token: "box-token", Kept: "box", By: place.ByVariable}},
		{name: "the same with a token", env: map[string]string{url: "https://box.example", token: "t"}, want: place.Server{URL: "https://box.example", Token: "t", By: place.ByVariable}},
		{name: "a token alone", current: "box", env: map[string]string{token: "t"}, want: own("t")},

		{name: "the flag", flag: "box", current: "lab", env: map[string]string{url: "http://x", token: "t"}, want: box(place.ByFlag)},
		{name: "the flag with a token alone", flag: "box", env: map[string]string{token: "t"}, want: box(place.ByFlag)},
		{name: "the flag for a signed out one", flag: "old", env: map[string]string{token: "t"}, code: fault.Unauthenticated},
		{name: "the flag for none", flag: "nowhere", code: fault.NotFound},
		{name: "the flag for this machine's", flag: "local", current: "box", want: own("")},
		{name: "the flag for this machine's with a token", flag: "local", current: "box", env: map[string]string{token: "t"}, want: own("t")},
		{name: "the flag for this machine's with a token for another", flag: "local", env: map[string]string{url: "http://x", token: "t", admin: "a"}, want: own("")},
		{name: "a URL", flag: "https://y.example/", current: "box", env: map[string]string{token: "t"}, want: place.Server{URL: "https://y.example", Token: "t", By: place.ByFlag}},
		{name: "a URL with a token for it", flag: "https://y.example/", env: map[string]string{url: "https://y.example/v1", token: "t"}, want: place.Server{URL: "https://y.example", Token: "t", By: place.ByFlag}},
		{name: "a URL with a token for another", flag: "https://y.example", env: map[string]string{url: "http://x", token: "t"}, want: place.Server{URL: "https://y.example", By: place.ByFlag}},
		{name: "a URL with the server's own variable", flag: "https://y.example", env: map[string]string{admin: "a"}, want: place.Server{URL: "https://y.example", By: place.ByFlag}},
		{name: "a URL that is kept", flag: "https://box.example/v1", env: map[string]string{token: "t"}, want: box(place.ByFlag)},
	} {
		a := withServers(t, c.current, c.env)
		a.Server = c.flag
		got, err := a.Chosen()
		if got != c.want || (err == nil) != (c.code == "") || err != nil && !fault.Is(err, c.code) {
			t.Errorf("%s: got %+v, %v; want %+v, %s", c.name, got, err, c.want, c.code)
		}
	}
}

func TestTheFlagServer(t *testing.T) {
	for flag, good := range map[string]bool{
		"box": true, "local": true, "https://x.example": true, "http://[::1]:8080/v1": true,
		"": false, "a b": false, "ftp://x.example": false, "https://user:secret@x.example": false, "https://x.example?a=b": false, "-x": false,
	} {
		f := new(place.Flag)
		if err := f.Set(flag); (err == nil) != good || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", flag, err)
		}
	}
	// Who names a server that a command cannot have is told, and nothing is done to another.
	for _, line := range []string{"up", "serve", "down", "doctor --repair", "restore x", "login https://x.example", "connect https://x.example", "server ls", "server use box"} {
		a := withServers(t, "", nil)
		root := newRoot(a)
		root.SetArgs(append([]string{"--server", "box"}, strings.Fields(line)...))
		if err := root.Execute(); err == nil || !strings.Contains(err.Error(), strings.Fields(line)[0]) || !strings.Contains(err.Error(), "server") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// A list that cannot be read stops no command that needs none of it.
func TestAListThatCannotBeRead(t *testing.T) {
	a := withServers(t, "", map[string]string{"SANDPIT_URL": "http://x", "SANDPIT_TOKEN": "t"})
	path, err := servers.Path(runtime.GOOS, a.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if err := (servers.List{Current: "none"}).Write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Chosen(); err != nil {
		t.Errorf("with a URL and a token: %v", err)
	}
	a.Server = "box"
	if _, err := a.Chosen(); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.As(err).Remedy, path) {
		t.Errorf("for a name: %v", err)
	}
	if _, err := a.Keep(func(*servers.List) error { return nil }); err == nil {
		t.Error("it is written over")
	}
}
