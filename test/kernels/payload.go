// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sandpit.dev/test/kernels/told"
)

// compiled is a package whose tests run in the machines.
type compiled struct {
	told.Test
	folder string
}

var tests = []compiled{
	{told.Test{Name: "changes", Run: ".", Minutes: 10}, "linux/changes"},
	{told.Test{Name: "layer", Run: ".", Minutes: 30}, "linux/layer"},
	{told.Test{Name: "cgroup", Run: ".", Minutes: 10}, "linux/cgroup"},
	{told.Test{Name: "cgroupfs", Run: ".", Minutes: 5}, "linux/cgroup/cgroupfs"},
	{told.Test{Name: "steer", Run: ".", Minutes: 5}, "linux/steer"},
	{told.Test{Name: "agent", Run: ".", Minutes: 20}, "agent/server"},
	{told.Test{Name: "view", Run: ".", Minutes: 5}, "agent/server/view"},
	{told.Test{Name: "files", Run: ".", Minutes: 5}, "agent/server/files"},
	{told.Test{Name: "native", Run: "^TestConformance", Minutes: 60}, "runtime/native"},
}

// others are the checks that are no tests, in their order; see the program inside.
var others = []string{"doctor", "cli", "leftovers"}

// planOf returns what is to be checked: all, or what is wanted.
func planOf(wanted []string) (plan told.Plan, err error) {
	known := slices.Clone(others)
	for _, check := range others {
		if len(wanted) == 0 || slices.Contains(wanted, check) {
			plan.Checks = append(plan.Checks, check)
		}
	}
	for _, t := range tests {
		known = append(known, t.Name)
		if len(wanted) == 0 || slices.Contains(wanted, t.Name) {
			plan.Tests = append(plan.Tests, t.Test)
		}
	}
	for _, check := range wanted {
		if !slices.Contains(known, check) {
			return plan, fmt.Errorf("there is no check %q; there are %s", check, strings.Join(known, ", "))
		}
	}
	return plan, nil
}

func (c *cache) payload() string { return c.path("payload.img") }

// makePayload makes the machines' second disk: what is built of this tree, and the images.
// It is run in the tree.
func (c *cache) makePayload(plan told.Plan, images string) error {
	c.say("building the program and the tests")
	dir := c.path("payload")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	static := []string{"CGO_ENABLED=0"}
	if _, err := c.doIn("", static, "make", "build"); err != nil {
		return err
	}
	for _, program := range []string{"bin/sandpit", "agent/embedded/bin/" + told.Agent} {
		if _, err := c.do("cp", program, dir); err != nil {
			return err
		}
	}
	if _, err := c.doIn("", static, "go", "build", "-trimpath", "-o", filepath.Join(dir, "inside"), "./test/kernels/inside"); err != nil {
		return err
	}
	for _, t := range tests {
		if !slices.ContainsFunc(plan.Tests, func(p told.Test) bool { return p.Name == t.Name }) {
			continue
		}
		at := filepath.Join(dir, "tests", t.Name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if _, err := c.doIn("", static, "go", "test", "-c", "-trimpath", "-o", filepath.Join(at, "test"), "./"+t.folder); err != nil {
			return err
		}
		if data := filepath.Join(t.folder, "testdata"); exists(data) {
			if _, err := c.do("cp", "-a", data, at); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), text, 0o644); err != nil {
		return err
	}
	return c.packPayload(dir, images)
}

// packPayload makes the disk, with room to spare.
func (c *cache) packPayload(dir, images string) error {
	python := filepath.Join(images, "python")
	if !exists(python) {
		return fmt.Errorf("there is no python image in %s: run `go test ./image -run Python`, or `make test`, first", images)
	}
	if err := os.Mkdir(filepath.Join(dir, "images"), 0o755); err != nil {
		return err
	}
	if _, err := c.do("cp", "-a", "--", python, filepath.Join(dir, "images")); err != nil {
		return err
	}
	c.say("making the disk of what is checked")
	if err := os.RemoveAll(c.payload()); err != nil {
		return err
	}
	if _, err := c.do("mkfs.ext4", "-q", "-F", "-d", dir, c.payload(), "6G"); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
