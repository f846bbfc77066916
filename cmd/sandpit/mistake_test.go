// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/cmd/sandpit/internal/app"
	"sandpit.dev/cmd/sandpit/internal/place"
)

func TestWhatDiffersIsToldByTheFlagsThatAskedForIt(t *testing.T) {
	var said strings.Builder
	a := &app.App{Stderr: &said, Stdout: io.Discard, Finder: place.Finder{Getenv: func(string) string { return "" }}}
	c := &cobra.Command{Use: "create"}
	m := makingFlags(a, c)
	if err := c.ParseFlags(strings.Fields("--name x --image i --cpu 2 --memory 1G --disk 1G --pids 9 --env A=1 --label a=b --from-snapshot s/n --volume v:/mnt " +
		"--network restricted --allow python --learn --idle-timeout 5m --idle-action stop --retention 5m --ttl 5m --auto-delete --auto-start --auto-resume --checkpoints off")); err != nil {
		t.Fatal(err)
	}
	a.Command = c
	b, err := json.Marshal(m.request())
	if err != nil {
		t.Fatal(err)
	}
	var sent map[string]any
	if err := json.Unmarshal(b, &sent); err != nil {
		t.Fatal(err)
	}
	if len(sent) < 18 {
		t.Fatalf("only %d fields are asked for: %s", len(sent), b)
	}
	for field := range sent {
		if len(app.GivenBy(c, field)) == 0 && field != "ttl_mode" {
			t.Errorf("it is not known which flag gave %s", field)
		}
	}
	tellDiffers(a, &v1.Sandbox{Differs: []string{"memory_mb", "network", "metadata", "of_a_later_server"}})
	if got, want := said.String(), "sandpit: it was left as it is, and is not what was asked for in: --memory, --network, --allow, --learn, --label, of_a_later_server\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
