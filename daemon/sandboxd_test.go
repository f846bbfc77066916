// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"strings"
	"testing"
	"time"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

// theirs is an environment as mcp-sandboxd's documents have it.
func theirs() map[string]string {
	return map[string]string{
		"PORT": "9090", "MCP_PATH": "/tools", "CORS_ALLOW_ORIGINS": "https://a.example, https://b.example", "SANDBOX_BACKEND": "docker",
		"SANDBOX_IMAGE": "python-3.12", "SANDBOX_NETWORK_MODE": "bridge", "SANDBOX_CAP_DROP": "ALL",
		"SANDBOX_CAP_ADD": "SETUID,SETGID,cap_chown, FOWNER,DAC_OVERRIDE", "SANDBOX_CAPS_STRICT": "true", "SANDBOX_NO_NEW_PRIVILEGES": "true", "AUTO_BUILD_SANDBOX_IMAGE": "false",
		"DEFAULT_TTL_SECONDS": "1800", "MAX_TTL_SECONDS": "86400", "REAPER_INTERVAL_MS": "5000",
		"DEFAULT_CPU_CORES": "0.5", "DEFAULT_MEMORY_MB": "768", "DEFAULT_PIDS": "99",
		"DEFAULT_COMMAND_TIMEOUT_MS": "60000", "DEFAULT_STDOUT_MAX_BYTES": "5000", "DEFAULT_STDERR_MAX_BYTES": "6000",
		"DEFAULT_AWAIT_COMPLETION": "Yes", "DEFAULT_AWAIT_TIMEOUT_MS": "2500", "MAX_RUNS": "77",
		"ARTIFACTS_DIR": "/srv/artifacts", "ARTIFACTS_MAX_EXTRACT_BYTES": "268435456", "ARTIFACTS_MAX_EXTRACT_FILES": "12", "ARTIFACTS_MAX_EXTRACT_FILE_BYTES": "67108865",
		"LOG_HTTP_REQUESTS": "true", "LOG_MCP_REQUESTS": "off", "LOG_TOOLCALLS": "1", "DENYLIST_PATTERNS": `\bmount\b`,
		"TOOL_DESC_RUN_SANDBOX_APPEND": "Prefer Python.", "TOOL_DESC_DELETE_SANDBOX_OVERRIDE": "Remove it.",
	}
}

func readAs(env map[string]string) (Config, error) {
	c := DefaultConfig()
	err := c.ReadEnv(func(name string) string { return env[name] })
	return c, err
}

func TestTheEnvironmentOfSandboxdHolds(t *testing.T) {
	c, err := readAs(theirs())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	d := c.Runs.Defaults.runs()
	for what, ok := range map[string]bool{
		"address":      c.Listen == ":9090",
		"path":         c.MCP.Path == "/tools" && c.MCP.Profile == "mcp-sandboxd",
		"origins":      strings.Join(c.Origins, " ") == "https://a.example https://b.example",
		"image":        c.Images.Default == "python-3.12",
		"network":      c.Network.Default == string(sandbox.NetworkOpen),
		"limits":       c.Defaults.CPU == 0.5 && c.Defaults.MemoryMB == 768 && c.Defaults.Pids == 99,
		"ttl":          d.TTL == 30*time.Minute && d.MaxTTL == 24*time.Hour,
		"time":         d.Timeout == time.Minute,
		"output":       d.Stdout == 5000 && d.Stderr == 6000,
		"await":        d.Await && d.Wait == 2500*time.Millisecond,
		"runs":         c.Runs.Most == 77,
		"artifacts":    c.artifactsDir() == "/srv/artifacts" && c.Runs.Artifacts.MaxMB == 256 && c.Runs.Artifacts.MaxFiles == 12 && c.Runs.Artifacts.MaxFileMB == 65,
		"logs":         c.Log.Requests && !c.Log.MCP && c.Log.Tools,
		"descriptions": c.MCP.Descriptions["mcp-sandboxd"]["run_sandbox"].Append == "Prefer Python." && c.MCP.Descriptions["mcp-sandboxd"]["delete_sandbox"].Override == "Remove it.",
		"runtime":      len(c.Runtimes.wanted()) == 1 && c.Runtimes.wanted()[0].Name() == "docker" && c.Docker.Host == "auto" && c.Runtimes.host() == nil,
		"prebuilt":     !c.PrebuildImage,
		"no effect":    len(c.withoutEffect) == 2 && strings.HasPrefix(c.withoutEffect[0], "DENYLIST_PATTERNS: "),
	} {
		if !ok {
			t.Errorf("%s: %+v", what, c)
		}
	}
}

func TestOwnVariablesGoBeforeThoseOfSandboxd(t *testing.T) {
	env := theirs()
	env["SANDPIT_LISTEN"], env["SANDPIT_MCP_PROFILE"] = "127.0.0.1:7000", "sandpit"
	c, err := readAs(env)
	if err != nil || c.Listen != "127.0.0.1:7000" || c.MCP.Profile != "sandpit" {
		t.Errorf("%v: %s, %s", err, c.Listen, c.MCP.Profile)
	}
	if c, err = readAs(map[string]string{"PORT": "9090"}); err != nil || c.Listen != "127.0.0.1:9090" || c.MCP.Profile != "" {
		t.Errorf("PORT alone: %v: %s, %s", err, c.Listen, c.MCP.Profile)
	}
	c = DefaultConfig()
	c.Listen = ":8080" // of the file, as in the server's own image
	if err := c.ReadEnv(func(name string) string { return map[string]string{"PORT": "9090"}[name] }); err != nil || c.Listen != ":9090" {
		t.Errorf("PORT beside a file that listens on all addresses: %v: %s", err, c.Listen)
	}
	if c, err = readAs(map[string]string{"TOOL_DESC_OVERRIDES_ENABLED": "no", "TOOL_DESC_RUN_SANDBOX_APPEND": "x"}); err != nil || len(c.MCP.Descriptions) != 0 {
		t.Errorf("descriptions that are switched off: %v, %v", err, c.MCP.Descriptions)
	}
}

func TestWhatCannotBeHonouredEndsTheStart(t *testing.T) {
	for name, value := range map[string]string{
		"PORT": "eighty", "SANDBOX_NETWORK_MODE": "host", "CORS_ALLOW_ORIGINS": "*", "DEFAULT_CPU_CORES": "many", "DEFAULT_TTL_SECONDS": "0",
		"DEFAULT_STDOUT_MAX_BYTES": "1048577", "DEFAULT_AWAIT_COMPLETION": "perhaps", "MAX_RUNS": "-1",
		"SANDBOX_NO_NEW_PRIVILEGES": "false", "SANDBOX_CAP_ADD": "SYS_ADMIN", "SANDBOX_CAP_DROP": "NET_RAW,CAP_CHOWN", "AUTO_BUILD_SANDBOX_IMAGE": "maybe",
	} {
		_, err := readAs(map[string]string{name: value})
		if e := fault.As(err); err == nil || len(e.Fields) != 1 || e.Fields[0].Name != name {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
	for name, env := range map[string]map[string]string{
		"SANDBOX_BACKEND":  {"SANDBOX_BACKEND": "podman"},
		"SANDBOX_CAP_ADD":  {"SANDBOX_CAP_ADD": "NO_SUCH"},
		"SANDBOX_CAP_DROP": {"SANDBOX_CAP_DROP": "NO_SUCH"},
	} {
		if _, err := readAs(env); err == nil || fault.As(err).Fields[0].Name != name {
			t.Errorf("%v: %v", env, err)
		}
	}
	for _, env := range []map[string]string{
		{"SANDBOX_CAP_ADD": "NO_SUCH", "SANDBOX_CAPS_STRICT": "0"}, {"SANDBOX_CAP_ADD": "NO_SUCH", "SANDBOX_CAPS_BYPASS_CHECK": "1"},
	} {
		if c, err := readAs(env); err != nil || len(c.withoutEffect) != 1 {
			t.Errorf("%v: %v, %v", env, err, c.withoutEffect)
		}
	}
	for _, p := range []string{"tools", "/", "/v1/x", "/mcp/x", "/a//b", "/register", "/a/../b", "/{x}"} {
		c := DefaultConfig()
		c.MCP.Path = p
		if err := c.Check(); err == nil {
			t.Errorf("the path %q was taken", p)
		}
	}
	c := DefaultConfig()
	c.Runs.Defaults = RunDefaults{TTL: 2 * time.Hour, MaxTTL: time.Hour}
	if err := c.Check(); err == nil {
		t.Error("a default above the most was taken")
	}
}

// SANDBOX_BACKEND puts docker before what the file names, and SANDPIT_RUNTIMES goes before both.
func TestTheBackendIsTheDefaultRuntime(t *testing.T) {
	for _, tt := range []struct {
		file []string
		env  map[string]string
		want string
		told int // variables without effect
	}{
		{nil, nil, "native", 0},
		{nil, map[string]string{"DOCKER_HOST": "unix:///run/x.sock"}, "native", 1},
		{nil, map[string]string{"SANDPIT_DOCKER_HOST": "auto", "DOCKER_HOST": "unix:///run/x.sock"}, "native docker", 0},
		{nil, map[string]string{"SANDBOX_BACKEND": "docker", "DOCKER_HOST": "unix:///run/x.sock"}, "docker", 0},
		{[]string{"native"}, map[string]string{"SANDBOX_BACKEND": "docker"}, "docker native", 0},
		{[]string{"native", "docker"}, map[string]string{"SANDBOX_BACKEND": "docker"}, "docker native", 0},
		{[]string{"docker"}, map[string]string{"SANDPIT_RUNTIMES": "native,docker"}, "native docker", 0},
		{[]string{"native"}, map[string]string{"SANDPIT_DOCKER_HOST": "auto"}, "native", 0},
		{nil, map[string]string{"SANDBOX_BACKEND": "kubernetes", "KUBECONFIG": "/x"}, "kubernetes", 0},
		{[]string{"native"}, map[string]string{"SANDBOX_BACKEND": "kubernetes", "K8S_SANDBOX_CONTAINER_NAME": "box"}, "kubernetes native", 1},
		{nil, map[string]string{"K8S_SANDBOX_NAMESPACE": "agents", "KUBERNETES_SANDBOX_CONTAINER_NAME": "sandbox", "KUBERNETES_SANDBOX_LABEL_PREFIX": "x.example"}, "native", 3},
		{nil, map[string]string{"SANDPIT_RUNTIMES": "kubernetes", "K8S_SANDBOX_NAMESPACE": "agents"}, "kubernetes", 0},
	} {
		c := DefaultConfig()
		c.Runtimes.Names = tt.file
		err := c.ReadEnv(func(name string) string { return tt.env[name] })
		if err == nil {
			err = c.Check()
		}
		var got []string
		for _, k := range c.Runtimes.wanted() {
			got = append(got, k.Name())
		}
		if err != nil || strings.Join(got, " ") != tt.want || len(c.withoutEffect) != tt.told {
			t.Errorf("%v with %v: %v, %v, %v", tt.file, tt.env, got, c.withoutEffect, err)
		}
	}
	for _, names := range [][]string{{"podman"}, {"docker", "docker"}, {""}} {
		c := DefaultConfig()
		c.Runtimes.Names = names
		if err := c.Check(); fault.Of(err) != fault.Invalid || !strings.HasPrefix(fault.As(err).Message, "runtimes: ") {
			t.Errorf("%q: %v", names, err)
		}
	}
}

func TestTheBackendInPods(t *testing.T) {
	c, err := readAs(map[string]string{
		"SANDBOX_BACKEND": "kubernetes", "KUBERNETES_SANDBOX_NAMESPACE": "agents", "K8S_SANDBOX_NAMESPACE": "older", "KUBERNETES_SANDBOX_CONTAINER_NAME": "sandbox",
		"KUBERNETES_SANDBOX_LABEL_PREFIX": "sandboxes.example", "SANDBOX_IMAGE": "registry.example/agents:1", "KUBECONFIG": "/somewhere",
	})
	if err == nil {
		err = c.Check()
	}
	if k := &c.Kubernetes; err != nil || k.Namespace != "agents" || k.Labels["sandboxes.example/role"] != "sandbox" || k.Kubeconfig != "auto" || len(c.withoutEffect) != 0 {
		t.Errorf("%v: %+v, %v", err, k, c.withoutEffect)
	}
	for variable, field := range map[string]string{"KUBERNETES_SANDBOX_NAMESPACE": "kubernetes.namespace", "KUBERNETES_SANDBOX_LABEL_PREFIX": "kubernetes.labels"} {
		c, err := readAs(map[string]string{"SANDBOX_BACKEND": "kubernetes", variable: "Not A Name"})
		if err == nil {
			err = c.Check()
		}
		if err == nil || !strings.HasPrefix(fault.As(err).Message, field+": ") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
