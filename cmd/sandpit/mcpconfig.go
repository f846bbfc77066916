// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// mcpClient is a program that speaks MCP, and how it is told of a server.
type mcpClient struct {
	name, title, where string
	snippet            func(mcpEntry) string
}

// mcpEntry is what a snippet is made of.
type mcpEntry struct {
	url, token string
	program    string // this one
	api        string // the server's base URL
}

func (e mcpEntry) header() map[string]any {
	return map[string]any{"Authorization": "Bearer " + e.token}
}

// mcpClients are the clients that are known: a new one is a line here.
func mcpClients() []mcpClient {
	named := func(key string, entry func(mcpEntry) map[string]any) func(mcpEntry) string {
		return func(e mcpEntry) string {
			return pretty(map[string]any{key: map[string]any{"sandpit": entry(e)}})
		}
	}
	return []mcpClient{
		{"claude", "Claude Code", "run this in a shell", func(e mcpEntry) string {
			return claudeLine(place{url: e.api, token: e.token})
		}},
		{"claude-desktop", "Claude Desktop", "claude_desktop_config.json", named("mcpServers", func(e mcpEntry) map[string]any {
			return map[string]any{
				"command": e.program, "args": []string{"mcp"},
				"env": map[string]any{"SANDPIT_URL": e.api, "SANDPIT_TOKEN": e.token},
			}
		})},
		{"cursor", "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json of a project", named("mcpServers", func(e mcpEntry) map[string]any {
			return map[string]any{"url": e.url, "headers": e.header()}
		})},
		{"vscode", "VS Code", ".vscode/mcp.json", named("servers", func(e mcpEntry) map[string]any {
			return map[string]any{"type": "http", "url": e.url, "headers": e.header()}
		})},
		{"opencode", "OpenCode", "opencode.json", named("mcp", func(e mcpEntry) map[string]any {
			return map[string]any{"type": "remote", "url": e.url, "headers": e.header(), "enabled": true}
		})},
		{"codex", "Codex", "~/.codex/config.toml", func(e mcpEntry) string {
			return fmt.Sprintf("[mcp_servers.sandpit]\nurl = %s\nhttp_headers = { \"Authorization\" = %s }\n", tomlText(e.url), tomlText("Bearer "+e.token))
		}},
		{"gemini", "Gemini CLI", "~/.gemini/settings.json", named("mcpServers", func(e mcpEntry) map[string]any {
			return map[string]any{"httpUrl": e.url, "headers": e.header()}
		})},
		{"windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", named("mcpServers", func(e mcpEntry) map[string]any {
			return map[string]any{"serverUrl": e.url, "headers": e.header()}
		})},
		{"json", "any other client", "a file with the key mcpServers (.mcp.json)", named("mcpServers", func(e mcpEntry) map[string]any {
			return map[string]any{"type": "http", "url": e.url, "headers": e.header()}
		})},
		{"stdio", "any client that starts a program", "a file with the key mcpServers", named("mcpServers", func(e mcpEntry) map[string]any {
			return map[string]any{
				"command": e.program, "args": []string{"mcp"},
				"env": map[string]any{"SANDPIT_URL": e.api, "SANDPIT_TOKEN": e.token},
			}
		})},
	}
}

func newMCPConfig(a *app) *cobra.Command {
	var names []string
	for _, m := range mcpClients() {
		names = append(names, m.name)
	}
	c := &cobra.Command{
		Use:   "config [CLIENT]",
		Short: "Print how to add this server to an MCP client",
		Long: "Print how to add this server to an MCP client, ready to be pasted; without CLIENT for each one. It holds the\n" +
			"token that this command speaks to the server with; SANDPIT_TOKEN sets another.\n\nClients: " + strings.Join(names, ", ") + ".",
		Example: `  sandpit mcp config cursor
  SANDPIT_TOKEN=$(sandpit token create --name claude) sandpit mcp config claude`,
		Args:      takes(0, 1),
		ValidArgs: names,
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 && !slices.Contains(names, args[0]) {
			return misuse(c, "no client %q is known; there are %s", args[0], strings.Join(names, ", "))
		}
		p, err := a.locate()
		if err != nil {
			return err
		}
		program, err := os.Executable()
		if err != nil {
			return err
		}
		e := mcpEntry{url: mcpURL(p), api: p.url, token: p.token, program: program}
		if p.tokenFile != "" {
			a.warn("this is the administrator's token; make one for each client with: sandpit token create --name NAME")
		}
		for i, m := range mcpClients() {
			if len(args) == 1 {
				if m.name != args[0] {
					continue
				}
				a.warn("%s: %s", m.title, m.where)
				_, err := fmt.Fprintln(a.stdout, strings.TrimRight(m.snippet(e), "\n"))
				return err
			}
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			if _, err := fmt.Fprintf(a.stdout, "# %s (%s): %s\n%s\n", m.title, m.name, m.where, strings.TrimRight(m.snippet(e), "\n")); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// claudeLine adds a server to Claude Code.
func claudeLine(p place) string {
	inQuotes := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")
	return fmt.Sprintf(`claude mcp add --transport http sandpit %s --header "Authorization: Bearer %s"`, mcpURL(p), inQuotes.Replace(p.token))
}

func pretty(v any) string {
	var b strings.Builder
	_ = writeJSON(&b, v) // maps of text can always be encoded
	return b.String()
}

// tomlText is a basic string of TOML, whose escapes JSON's are among.
func tomlText(s string) string {
	b, _ := json.Marshal(s) // text can always be encoded
	return string(b)
}
