// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestPackageToolsGiveUpOnARefusedName counts how often they try a name that a sandbox with a list may not reach: pip and npm
// twice. apt tries four times, as it does anywhere.
func TestPackageToolsGiveUpOnARefusedName(t *testing.T) {
	s := serve(t)
	a := openAgent(t, s, "box")
	a.Do("create_sandbox", args{"name": a.Sandbox, "network": "restricted", "allow_domains": "allowed.example"})
	// asked runs a command that fails, and returns how often it asked for the name.
	asked := func(name, command string) (times int64) {
		got := a.Call("run_command", args{"command": command})
		first, _, _ := strings.Cut(got.Text, "\n")
		t.Attr("refused/"+name, first)
		if strings.HasPrefix(first, "exit 0 ") || !strings.Contains(got.Text, "network blocked: ") || !strings.Contains(got.Text, name) {
			t.Errorf("%s:\n%s", command, got.Text)
		}
		out, err := s.command("network", "log", a.Sandbox, "--refused", "-o", "json").Output()
		if err != nil {
			t.Fatal(err)
		}
		var log struct {
			Items []struct {
				Protocol, Name string
				Count          int64
			}
		}
		if err := json.Unmarshal(out, &log); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		for _, e := range log.Items {
			if e.Name == name && e.Protocol == "dns" {
				times += e.Count
			}
		}
		return times
	}
	once := asked("once.example", `python3 -c "import socket; socket.getaddrinfo('once.example', 443)"`)
	if once == 0 {
		t.Fatal("a question is in no log")
	}
	for name, c := range map[string]struct {
		most    int64 // attempts
		command string
	}{
		"pip.example": {2, "pip install --index-url https://pip.example/simple sandpit-apple"},
		"npm.example": {2, "npm install --registry https://npm.example sandpit-pear"},
		"apt.example": {4, aptUpdate("http://apt.example/debian")}, // no variable sets it
	} {
		n := asked(name, c.command)
		if n > c.most*once {
			t.Errorf("%s was asked for %d times, and one attempt asks %d times", name, n, once)
		}
		t.Attr("questions/"+name, fmt.Sprintf("%d, and %d by one attempt", n, once))
	}
}

// aptUpdate is a command that has apt fetch the lists of one source, and nothing else, as whatever user.
func aptUpdate(source string) string {
	return `mkdir -p /tmp/apt/lists/partial && echo "deb ` + source + ` stable main" >/tmp/apt/sources && apt-get -o Dir::Etc::SourceList=/tmp/apt/sources -o Dir::Etc::SourceParts=/dev/null ` +
		`-o Dir::State::Lists=/tmp/apt/lists -o Dir::Cache=/tmp/apt -o Debug::NoLocking=1 -o APT::Update::Error-Mode=any update`
}
