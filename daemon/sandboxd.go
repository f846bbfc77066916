// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/sandboxd"
	"sandpit.dev/fault"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
)

// sandboxdVariables reads the environment of mcp-sandboxd by its own names, so that one that was written for it
// goes on with this server. They go before the file, and SANDPIT_* before them. What cannot be
// honoured ends the start; what has no meaning here is named in the log.
type sandboxdVariables struct {
	getenv func(string) string
	config *Config
	err    error // the first
}

// readSandboxd overrides fields of c by the variables of mcp-sandboxd.
func (c *Config) readSandboxd(getenv func(string) string) error {
	v := &sandboxdVariables{getenv: getenv, config: c}
	v.place()
	v.backend()
	v.sandboxes()
	v.runs()
	v.descriptions()
	v.logs()
	v.meaningless()
	return v.err
}

func (v *sandboxdVariables) refuse(name, format string, args ...any) {
	if v.err == nil {
		v.err = fault.InvalidField(name, format, args...)
	}
}

// integer gives a variable to to, if it is there.
func (v *sandboxdVariables) integer(name string, least, most int64, to func(int64)) {
	s := v.getenv(name)
	if s == "" {
		return
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		v.refuse(name, "%q is not a number from %d to %d", sandbox.Clip(s, 20), least, most)
		return
	}
	to(n)
}

// boolean reads a variable as mcp-sandboxd does: in whatever letter case, and with several words for both.
func (v *sandboxdVariables) boolean(name string) (yes, set bool) {
	s := v.getenv(name)
	switch strings.ToLower(s) {
	case "":
		return false, false
	case "1", "true", "yes", "y", "on":
		return true, true
	case "0", "false", "no", "n", "off":
		return false, true
	}
	v.refuse(name, "%q is neither true nor false", sandbox.Clip(s, 20))
	return false, false
}

// place has where the server is found.
func (v *sandboxdVariables) place() {
	v.integer("PORT", 0, 65535, func(n int64) {
		host := hostOf(v.config.Listen)
		if v.getenv("SANDBOX_IMAGE") != "" {
			// Its servers need this one and listen on all addresses, in a container mostly. PORT alone may be meant for anybody.
			host = ""
		}
		v.config.Listen = net.JoinHostPort(host, strconv.FormatInt(n, 10))
	})
	if v.getenv("SANDBOX_IMAGE") != "" {
		v.config.MCP.Profile = sandboxd.Name // its clients know no other tools
	}
	if p := v.getenv("MCP_PATH"); p != "" {
		v.config.MCP.Path = p
	}
	if s := v.getenv("CORS_ALLOW_ORIGINS"); s != "" {
		for _, o := range strings.Split(s, ",") {
			if o = strings.TrimSpace(o); o == "*" {
				v.refuse("CORS_ALLOW_ORIGINS", "* would let any page that a browser shows drive this server; name the origins")
			} else if o != "" && !slices.Contains(v.config.Origins, o) {
				v.config.Origins = append(v.config.Origins, o)
			}
		}
	}
}

// sandboxes has what sandboxes are and may.
func (v *sandboxdVariables) sandboxes() {
	d := &v.config.Defaults
	if image := v.getenv("SANDBOX_IMAGE"); image != "" {
		v.config.Images.Default = image
	}
	switch mode := v.getenv("SANDBOX_NETWORK_MODE"); mode {
	case "":
	case "bridge":
		v.config.Network.Default = string(sandbox.NetworkOpen)
	case "none":
		v.config.Network.Default = string(sandbox.NetworkOff)
	default:
		v.refuse("SANDBOX_NETWORK_MODE", "%q cannot be had: a sandbox never shares the host's network, nor another container's; use bridge or none", sandbox.Clip(mode, 40))
	}
	if s := v.getenv("DEFAULT_CPU_CORES"); s != "" {
		n, err := strconv.ParseFloat(s, 64)
		if err != nil {
			v.refuse("DEFAULT_CPU_CORES", "%q is not a number", sandbox.Clip(s, 20))
		}
		d.CPU = n
	}
	v.integer("DEFAULT_MEMORY_MB", 1, sandbox.MaxMemoryMB, func(n int64) { d.MemoryMB = int(n) })
	v.integer("DEFAULT_PIDS", 1, int64(sandbox.MaxLimits().Pids), func(n int64) { d.Pids = int(n) })
}

// runs has the defaults of runs, and what is kept of them.
func (v *sandboxdVariables) runs() {
	r, d := &v.config.Runs, &v.config.Runs.Defaults
	week, day := int64(runs.MaxTTL/time.Second), (24 * time.Hour).Milliseconds()
	v.integer("DEFAULT_TTL_SECONDS", 1, week, func(n int64) { d.TTL = time.Duration(n) * time.Second })
	v.integer("MAX_TTL_SECONDS", 1, week, func(n int64) { d.MaxTTL = time.Duration(n) * time.Second })
	v.integer("DEFAULT_COMMAND_TIMEOUT_MS", 1, day, func(n int64) { d.CommandTimeout = time.Duration(n) * time.Millisecond })
	v.integer("DEFAULT_AWAIT_TIMEOUT_MS", 1, day, func(n int64) { d.Wait = time.Duration(n) * time.Millisecond })
	if yes, set := v.boolean("DEFAULT_AWAIT_COMPLETION"); set {
		d.Await = yes
	}
	v.integer("DEFAULT_STDOUT_MAX_BYTES", 1, runs.MaxStream, func(n int64) { d.StdoutBytes = n })
	v.integer("DEFAULT_STDERR_MAX_BYTES", 1, runs.MaxStream, func(n int64) { d.StderrBytes = n })
	v.integer("MAX_RUNS", 1, 1<<30, func(n int64) { r.Most = int(n) })
	if dir := v.getenv("ARTIFACTS_DIR"); dir != "" {
		r.Artifacts.Dir = dir
	}
	v.integer("ARTIFACTS_MAX_EXTRACT_BYTES", 1, 1<<50, func(n int64) { r.Artifacts.MaxMB = megabytes(n) })
	v.integer("ARTIFACTS_MAX_EXTRACT_FILE_BYTES", 1, 1<<50, func(n int64) { r.Artifacts.MaxFileMB = megabytes(n) })
	v.integer("ARTIFACTS_MAX_EXTRACT_FILES", 1, 1<<30, func(n int64) { r.Artifacts.MaxFiles = int(n) })
}

// megabytes rounds up, since the configuration has no smaller unit.
func megabytes(bytes int64) int { return int((bytes + 1<<20 - 1) >> 20) }

// descriptions has what the tools say.
func (v *sandboxdVariables) descriptions() {
	if on, set := v.boolean("TOOL_DESC_OVERRIDES_ENABLED"); set && !on {
		return
	}
	for _, tool := range []string{"run_sandbox", "delete_sandbox", "restart_sandbox"} {
		name := "TOOL_DESC_" + strings.ToUpper(tool)
		d := DescriptionConfig{Override: v.getenv(name + "_OVERRIDE"), Append: v.getenv(name + "_APPEND")}
		if d == (DescriptionConfig{}) {
			continue
		}
		of := &v.config.MCP.Descriptions
		if *of == nil {
			*of = make(map[string]map[string]DescriptionConfig)
		}
		if (*of)[sandboxd.Name] == nil {
			(*of)[sandboxd.Name] = make(map[string]DescriptionConfig)
		}
		before := (*of)[sandboxd.Name][tool]
		(*of)[sandboxd.Name][tool] = DescriptionConfig{Override: cmp.Or(d.Override, before.Override), Append: cmp.Or(d.Append, before.Append)}
	}
}

// logs has the switches of the log.
func (v *sandboxdVariables) logs() {
	for name, to := range map[string]*bool{"LOG_HTTP_REQUESTS": &v.config.Log.Requests, "LOG_MCP_REQUESTS": &v.config.Log.MCP, "LOG_TOOLCALLS": &v.config.Log.Tools} {
		if yes, set := v.boolean(name); set {
			*to = yes
		}
	}
}

// DescriptionConfig is a [mcp.Description].
type DescriptionConfig struct {
	Override string `yaml:"override"` // in place of our own
	Append   string `yaml:"append"`   // behind it
}

// descriptions returns those of the configuration.
func (c MCPConfig) descriptions() mcp.Descriptions {
	out := make(mcp.Descriptions, len(c.Descriptions))
	for profile, tools := range c.Descriptions {
		out[profile] = make(map[string]mcp.Description, len(tools))
		for tool, d := range tools {
			out[profile][tool] = mcp.Description(d)
		}
	}
	return out
}

// RunDefaults are the [runs.Defaults] of the configuration.
type RunDefaults struct {
	TTL            time.Duration `yaml:"ttl"`             // of a sandbox that a run makes: 1h
	MaxTTL         time.Duration `yaml:"max_ttl"`         // 168h
	CommandTimeout time.Duration `yaml:"command_timeout"` // 120s
	StdoutBytes    int64         `yaml:"stdout_bytes"`    // kept of each command: 1048576, which is also the most
	StderrBytes    int64         `yaml:"stderr_bytes"`    // likewise
	Await          bool          `yaml:"await"`           // calls of the profile mcp-sandboxd wait for their runs
	Wait           time.Duration `yaml:"wait"`            // of who waits: 30s
}

func (d RunDefaults) check() error {
	for name, n := range map[string]time.Duration{"ttl": d.TTL, "max_ttl": d.MaxTTL} {
		if n < 0 || n > 0 && n < sandbox.MinClock || n > runs.MaxTTL {
			return fault.InvalidField("runs.defaults."+name, "%v is outside %v to %v", n, sandbox.MinClock, runs.MaxTTL)
		}
	}
	if d.MaxTTL > 0 && d.TTL > d.MaxTTL {
		return fault.InvalidField("runs.defaults.ttl", "%v is more than max_ttl, which is %v", d.TTL, d.MaxTTL)
	}
	for name, n := range map[string]time.Duration{"command_timeout": d.CommandTimeout, "wait": d.Wait} {
		if n < 0 || n > 24*time.Hour {
			return fault.InvalidField("runs.defaults."+name, "%v is outside 0s to 24h", n)
		}
	}
	for name, n := range map[string]int64{"stdout_bytes": d.StdoutBytes, "stderr_bytes": d.StderrBytes} {
		if n < 0 || n > runs.MaxStream {
			return fault.InvalidField("runs.defaults."+name, "%d is outside 1 to %d", n, runs.MaxStream)
		}
	}
	return nil
}

func (d RunDefaults) runs() runs.Defaults {
	return runs.Defaults{TTL: d.TTL, MaxTTL: d.MaxTTL, Timeout: d.CommandTimeout, Stdout: d.StdoutBytes, Stderr: d.StderrBytes, Await: d.Await, Wait: d.Wait}
}
