// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpsetup

import (
	"path/filepath"
	"runtime"
)

// format is how a client's file is written.
type format int

const (
	strictJSON format = iota // the client reads no comments
	looseJSON                // it does, and commas before the end
	tomlFile
)

// Client is a program that speaks MCP.
type Client struct {
	ID    string // "claude-code"
	Title string
	// Note says what else there is to know, one line.
	Note string

	format format
	key    string // of the object, or table, that has the entries
	// refer is how its file names the variable TokenVar; empty: it cannot, and the token
	// is written down.
	refer  string
	asks   bool               // it asks its user for the token, and keeps it
	files  func(Env) []string // nil: it is not one program
	remote func(s Server, bearer string) object
	local  func(s Server, env object) object
}

// Env is what the place of a file depends on.
type Env struct {
	Home   string
	Getenv func(string) string
}

// Refers reports whether its file can do without the token. Of what is started as a
// program that is the bridge's: it finds the token of a server on the same machine.
func (c Client) Refers(s Server) bool {
	return c.refer != "" || c.asks || c.starts(s) && !s.Remote
}

// Names reports whether its file names the variable TokenVar, which then has to be in its
// environment.
func (c Client) Names(s Server) bool {
	return c.refer != "" && s.Token == "" && !(c.starts(s) && !s.Remote)
}

// starts reports whether it starts the bridge, and opens no URL.
func (c Client) starts(s Server) bool { return s.Stdio || c.remote == nil }

// Files returns where the client looks for its configuration; the first is created if none
// exists. A client that is not one program has no files.
func (c Client) Files(e Env) []string {
	if c.files == nil {
		return nil
	}
	return c.files(e)
}

// Language is that of its file, for people.
func (c Client) Language() string {
	if c.format == tomlFile {
		return "TOML"
	}
	return "JSON"
}

// in is a file below a directory that a variable names, or else below one of the home.
func in(variable, def string, names ...string) func(Env) []string {
	return func(e Env) []string {
		dir := e.Getenv(variable)
		if variable == "" || !filepath.IsAbs(dir) {
			dir = filepath.Join(e.Home, def)
		}
		var all []string
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		return all
	}
}

// app is a file of a program with windows.
func app(names ...string) func(Env) []string {
	switch runtime.GOOS {
	case "darwin":
		return in("", filepath.Join("Library", "Application Support"), names...)
	case "windows":
		return in("APPDATA", filepath.Join("AppData", "Roaming"), names...)
	}
	return in("XDG_CONFIG_HOME", ".config", names...)
}

// Clients are those that are known: a new one is an entry here.
func Clients() []Client {
	bearer := func(value string) object { return object{{"Authorization", value}} }
	program := func(s Server, env object) object {
		return object{{"command", s.Program}, {"args", s.args()}}.with("env", env)
	}
	typed := func(s Server, env object) object {
		return append(object{{"type", "stdio"}}, program(s, env)...)
	}
	typedURL := func(s Server, value string) object {
		return object{{"type", "http"}, {"url", s.URL}, {"headers", bearer(value)}}
	}
	return []Client{
		{
			ID: "claude-code", Title: "Claude Code", format: strictJSON, key: "mcpServers", refer: "${" + TokenVar + "}",
			files: in("CLAUDE_CONFIG_DIR", "", ".claude.json"), remote: typedURL, local: typed,
			Note: "The same entry in the file .mcp.json of a project is for all who work on it.",
		},
		{
			ID: "claude-desktop", Title: "Claude Desktop", format: strictJSON, key: "mcpServers",
			files: app(filepath.Join("Claude", "claude_desktop_config.json")), local: program,
			Note: "It opens no URL of its own: it starts this program. Restart it afterwards.",
		},
		{
			ID: "cursor", Title: "Cursor", format: looseJSON, key: "mcpServers", refer: "${env:" + TokenVar + "}",
			files: in("", ".cursor", "mcp.json"), local: program,
			remote: func(s Server, value string) object {
				return object{{"url", s.URL}, {"headers", bearer(value)}}
			},
			Note: "The same file in the folder .cursor of a project is for that alone.",
		},
		{
			ID: "vscode", Title: "VS Code", format: looseJSON, key: "servers", asks: true,
			files: app(filepath.Join("Code", "User", "mcp.json")), remote: typedURL, local: typed,
			Note: "It asks for the token when it starts the server, and keeps it. The same file as .vscode/mcp.json is for a project alone.",
		},
		{
			ID: "opencode", Title: "OpenCode", format: looseJSON, key: "mcp", refer: "{env:" + TokenVar + "}",
			files: in("XDG_CONFIG_HOME", ".config", filepath.Join("opencode", "opencode.json"), filepath.Join("opencode", "opencode.jsonc")),
			remote: func(s Server, value string) object {
				return object{{"type", "remote"}, {"url", s.URL}, {"headers", bearer(value)}, {"oauth", false}, {"enabled", true}}
			},
			local: func(s Server, env object) object {
				return append(object{{"type", "local"}, {"command", append([]string{s.Program}, s.args()...)}}.with("environment", env), member{"enabled", true})
			},
			Note: "opencode.json of a project has the same form.",
		},
		{
			ID: "windsurf", Title: "Windsurf", format: strictJSON, key: "mcpServers", refer: "${env:" + TokenVar + "}",
			files: in("", filepath.Join(".codeium", "windsurf"), "mcp_config.json"), local: program,
			remote: func(s Server, value string) object {
				return object{{"serverUrl", s.URL}, {"headers", bearer(value)}}
			},
		},
		{
			ID: "codex", Title: "Codex", format: tomlFile, key: "mcp_servers", refer: TokenVar,
			files: in("CODEX_HOME", ".codex", "config.toml"),
			remote: func(s Server, value string) object {
				if value == TokenVar {
					return object{{"url", s.URL}, {"bearer_token_env_var", TokenVar}}
				}
				return object{{"url", s.URL}, {"http_headers", bearer(value)}}
			},
			local: func(s Server, env object) object {
				if env.get(TokenVar) == TokenVar {
					return object{{"command", s.Program}, {"args", s.args()}}.with("env", env.without(TokenVar)).with("env_vars", []string{TokenVar})
				}
				return program(s, env)
			},
		},
		{
			ID: "gemini", Title: "Gemini CLI", format: looseJSON, key: "mcpServers", refer: "$" + TokenVar,
			files: in("", ".gemini", "settings.json"), local: program,
			remote: func(s Server, value string) object {
				return object{{"url", s.URL}, {"type", "http"}, {"headers", bearer(value)}}
			},
			Note: "It uses servers of this file in folders that it is told to trust.",
		},
		{
			ID: "json", Title: "any other client", format: strictJSON, key: "mcpServers", remote: typedURL, local: program,
			Note: "Most read this form, of a file like .mcp.json.",
		},
		{
			ID: "stdio", Title: "any client that starts a program", format: strictJSON, key: "mcpServers", local: program,
			Note: "Most read this form.",
		},
	}
}

// Find returns the client with an id.
func Find(id string) (Client, bool) {
	for _, c := range Clients() {
		if c.ID == id {
			return c, true
		}
	}
	return Client{}, false
}

// tokenInput is the id by which VS Code knows the token that it asks for.
func tokenInput(s Server) string { return s.Name + "-token" }

// entry is what the client is to read of the server.
func (c Client) entry(s Server) object {
	ref := c.refer
	if c.asks {
		ref = "${input:" + tokenInput(s) + "}"
	}
	if c.starts(s) {
		var env object
		switch {
		case !s.Remote:
		case s.Token != "":
			env = object{{TokenVar, s.Token}}
		case ref != "":
			env = object{{TokenVar, ref}}
		}
		return c.local(s, env)
	}
	switch {
	case s.Token != "":
		return c.remote(s, "Bearer "+s.Token)
	case c.format == tomlFile:
		return c.remote(s, ref)
	}
	return c.remote(s, "Bearer "+ref)
}

// input is what VS Code is to ask for; nil: nothing.
func (c Client) input(s Server) object {
	if !c.asks || s.Token != "" || c.starts(s) && !s.Remote {
		return nil
	}
	return object{
		{"type", "promptString"}, {"id", tokenInput(s)}, {"description", "Token of the sandpit server at " + s.URL}, {"password", true},
	}
}
