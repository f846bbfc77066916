// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sandpit.dev/api/mcp"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
)

func TestAnOperatorsWordsStandInDescriptions(t *testing.T) {
	t.Parallel()
	h := open(t).again(func(o *mcp.Options) {
		o.Descriptions = mcp.Descriptions{"mcp-sandboxd": {
			"run_sandbox":    {Append: "Prefer Python."},
			"delete_sandbox": {Override: "Remove it."},
		}}
		o.Runs = runs.Defaults{TTL: 1800e9, Await: true, Wait: 2500e6}
	})
	about, schema := make(map[string]string), ""
	for _, tool := range listed(t, h.at("/mcp/mcp-sandboxd", "t-alice", handshake)).Tools {
		about[tool.Name] = tool.Description
		if tool.Name == "run_sandbox" {
			b, err := json.Marshal(tool.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			schema = string(b)
		}
	}
	if d := about["run_sandbox"]; !strings.HasSuffix(d, "\nPrefer Python.") || len(d) < 40 {
		t.Errorf("run_sandbox: %q", d)
	}
	if about["delete_sandbox"] != "Remove it." {
		t.Errorf("delete_sandbox: %q", about["delete_sandbox"])
	}
	for _, says := range []string{"default 1800", "default 2500", "default true"} {
		if !strings.Contains(schema, says) {
			t.Errorf("the schema does not say %q: %s", says, schema)
		}
	}
}

func TestDescriptionsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	var o mcp.Options
	open(t).again(func(made *mcp.Options) { o = *made })
	for says, d := range map[string]mcp.Descriptions{
		"no profile":         {"other": {"run_command": {Append: "x"}}},
		"no such tool":       {"sandpit": {"run_comand": {Append: "x"}}},
		"at most 4000 bytes": {"sandpit": {"run_command": {Append: strings.Repeat("x", 4001)}}},
		"tokens":             {"sandpit": {"run_command": {Append: strings.Repeat("x", 4000)}}},
	} {
		o.Descriptions = d
		if _, err := mcp.New(o); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
