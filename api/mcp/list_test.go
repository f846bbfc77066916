// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

var update = flag.Bool("update", false, "write the golden files anew")

func listed(t *testing.T, s *sdk.ClientSession) *sdk.ListToolsResult {
	t.Helper()
	res, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func toolNames(res *sdk.ListToolsResult) []string {
	var out []string
	for _, tool := range res.Tools {
		out = append(out, tool.Name)
	}
	return out
}

func TestToolsList(t *testing.T) {
	h := open(t)
	res := listed(t, h.alice())

	t.Run("IsAsWritten", func(t *testing.T) {
		data, err := json.Marshal(res.Tools)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, data, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		const golden = "testdata/tools.json"
		if *update {
			if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), b.String()); diff != "" {
			t.Errorf("tools/list differs from %s (-want +got; -update writes it anew):\n%s", golden, diff)
		}
	})

	t.Run("StaysWithinItsBudget", func(t *testing.T) {
		data, err := json.Marshal(res.Tools)
		if err != nil {
			t.Fatal(err)
		}
		tokens := len(data) / 4 // about what tokenizers make of JSON
		t.Logf("tools/list: %d tools, %d bytes, about %d tokens", len(res.Tools), len(data), tokens)
		if tokens > 4000 {
			t.Errorf("about %d tokens, want at most 4000", tokens)
		}
		for _, tool := range res.Tools {
			if n := len(tool.Description); n > 1200 {
				t.Errorf("%s: the description has %d bytes, want at most 1200", tool.Name, n)
			}
		}
	})

	t.Run("HasWhatDirectoriesAsk", func(t *testing.T) {
		for _, tool := range res.Tools {
			if tool.Title == "" || tool.Description == "" || tool.Annotations == nil || len(tool.Name) > 64 {
				t.Errorf("%s lacks a title, a description or hints, or has too long a name", tool.Name)
				continue
			}
			if a := tool.Annotations; !a.ReadOnlyHint && a.DestructiveHint == nil {
				t.Errorf("%s says neither that it reads only nor whether it destroys", tool.Name)
			}
		}
	})

	t.Run("UsesOnlyWhatEveryModelTakes", func(t *testing.T) {
		for _, tool := range res.Tools {
			data, err := json.Marshal(tool.InputSchema)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"$ref", "anyOf", "oneOf", "allOf", "\"default\"", "\"format\"", "\"type\":["} {
				if strings.Contains(string(data), word) {
					t.Errorf("the schema of %s has %s", tool.Name, word)
				}
			}
		}
	})

	t.Run("IsTheSameInBothErasAndEachTime", func(t *testing.T) {
		modern := listed(t, h.session("t-alice", stateless, nil))
		if diff := cmp.Diff(toolNames(res), toolNames(modern)); diff != "" {
			t.Error("names (-handshake +stateless):\n" + diff)
		}
		if modern.CacheScope != "private" {
			t.Errorf("the list's cache scope: got %q, want private: it depends on the token", modern.CacheScope)
		}
	})

	t.Run("OfAReadersTokenHasOnlyWhatReads", func(t *testing.T) {
		got := toolNames(listed(t, h.session("t-reader", handshake, nil)))
		if want := []string{"list_files", "list_sandboxes", "read_file"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestInstructionsStayWithinTheirBudget(t *testing.T) {
	got := open(t).alice().InitializeResult().Instructions
	if len(got) == 0 || len(got) > 1500 {
		t.Errorf("the instructions have %d bytes, want 1 to 1500", len(got))
	}
}
