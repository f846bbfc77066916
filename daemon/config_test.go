// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func poolsOf(t *testing.T, c Config) []prewarm.Pool {
	t.Helper()
	pools, err := c.pools()
	if err != nil {
		t.Fatal(err)
	}
	return pools
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sandpit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfig(t *testing.T) {
	t.Run("TheDefaultsAreValid", func(t *testing.T) {
		c := DefaultConfig()
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if got, want := c.Images.Dir, "/var/lib/sandpit/images"; got != want {
			t.Errorf("images: got %q, want %q", got, want)
		}
	})
	t.Run("TheFileLiesOverTheDefaultsAndTheEnvironmentOverTheFile", func(t *testing.T) {
		c := DefaultConfig()
		if err := c.ReadFile(write(t, "listen: 127.0.0.1:9000\ndata: /srv/a\nlog: {level: debug}\ndefaults: {memory_mb: 64, idle_timeout: 5m}\n")); err != nil {
			t.Fatal(err)
		}
		env := map[string]string{"SANDPIT_DATA": "/srv/b", "SANDPIT_HOSTS": "a.example,b.example", "SANDPIT_MCP_GROUPS": "state"}
		if err := c.ReadEnv(func(k string) string { return env[k] }); err != nil {
			t.Fatal(err)
		}
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		if c.Listen != "127.0.0.1:9000" || c.Data != "/srv/b" || c.Log.Level != slog.LevelDebug || c.Limits().MemoryMB != 64 ||
			c.Limits().Pids != 256 || c.Defaults.IdleTimeout != 5*time.Minute || len(c.Hosts) != 2 || !slices.Equal(c.MCP.Groups, []string{"state"}) {
			t.Errorf("got %+v", c)
		}
	})
	t.Run("SaysWhatIsMadeAhead", func(t *testing.T) {
		c := DefaultConfig()
		if d := cmp.Diff([]prewarm.Pool{{Min: 2}}, poolsOf(t, c)); d != "" {
			t.Errorf("by default (-want +got)\n%s", d)
		}
		read := func(file, variable string) []prewarm.Pool {
			t.Helper()
			c := DefaultConfig()
			err := c.ReadFile(write(t, file))
			if err == nil {
				err = c.ReadEnv(func(k string) string { return map[string]string{"SANDPIT_POOL": variable}[k] })
			}
			if err == nil {
				err = c.Check()
			}
			if err != nil {
				t.Fatal(err)
			}
			return poolsOf(t, c)
		}
		const file = "pools: [{image: python, memory_mb: 128, min: 1, max: 3, refill: 2}, {name: b, image: python, min: 1}]\n"
		want := []prewarm.Pool{
			{Image: "python", Limits: sandbox.Limits{MemoryMB: 128}, Min: 1, Max: 3, Refill: 2}, {Name: "b", Image: "python", Min: 1},
		}
		if d := cmp.Diff(want, read(file, "")); d != "" {
			t.Errorf("of the file (-want +got)\n%s", d)
		}
		if got := read("pools: []\n", ""); len(got) != 0 {
			t.Errorf("of a file that wants none: %v", got)
		}
		if d := cmp.Diff([]prewarm.Pool{{Min: 5}}, read(file, "5")); d != "" {
			t.Errorf("of the environment (-want +got)\n%s", d)
		}
		if got := read(file, "0"); len(got) != 0 {
			t.Errorf("of an environment that wants none: %v", got)
		}
		for _, n := range []string{"-1", "1001", "many"} {
			c := DefaultConfig()
			if err := c.ReadEnv(func(k string) string { return map[string]string{"SANDPIT_POOL": n}[k] }); fault.Of(err) != fault.Invalid {
				t.Errorf("a pool of %s: %v", n, err)
			}
		}
	})
	t.Run("SaysWhatBecameOfBlanks", func(t *testing.T) {
		for _, variable := range []string{"", "0"} {
			c := DefaultConfig()
			file := ""
			if variable == "" {
				file = "native: {blanks: 5}\n"
			}
			err := c.ReadFile(write(t, file))
			if err == nil {
				err = c.ReadEnv(func(k string) string { return map[string]string{"SANDPIT_BLANKS": variable}[k] })
			}
			if err == nil {
				err = c.Check()
			}
			if fault.Of(err) != fault.Invalid || !strings.Contains(fault.As(err).Remedy, "SANDPIT_POOL") {
				t.Errorf("got %v, want what to write instead", err)
			}
		}
	})
	t.Run("BoundsWhatSandboxesMayAskFor", func(t *testing.T) {
		c := DefaultConfig()
		if got, want := c.most(2, 10000), (sandbox.Limits{CPU: 2, MemoryMB: 8000, DiskMB: sandbox.MaxDiskMB, Pids: sandbox.MaxPids}); got != want {
			t.Errorf("on a host of 2 cores and 10,000 MiB: %+v, want %+v", got, want)
		}
		if got := c.most(0.5, 500); got.CPU != 1 || got.MemoryMB != 512 {
			t.Errorf("on a host with less than the defaults: %+v", got)
		}
		if got := c.most(500, 1<<30); got.Check() != nil {
			t.Errorf("on a host with more than there is: %+v", got)
		}
		err := c.ReadFile(write(t, "limits: {max: {cpu_cores: 1.5, memory_mb: 1024, pids: 300}}\n"))
		if err == nil {
			env := map[string]string{"SANDPIT_MAX_MEMORY_MB": "2048", "SANDPIT_MAX_DISK_MB": "4096"}
			err = c.ReadEnv(func(k string) string { return env[k] })
		}
		if err == nil {
			err = c.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.most(64, 1<<20), (sandbox.Limits{CPU: 1.5, MemoryMB: 2048, DiskMB: 4096, Pids: 300}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
	t.Run("AnEmptyFileChangesNothing", func(t *testing.T) {
		c := DefaultConfig()
		if err := c.ReadFile(write(t, "")); err != nil {
			t.Fatal(err)
		}
		if c.Listen != DefaultConfig().Listen {
			t.Errorf("listen became %q", c.Listen)
		}
	})
	for name, row := range map[string]struct {
		file string
		set  func(*Config)
		want string
	}{
		"AnUnknownKey":          {file: "lissten: 127.0.0.1:1\n", want: "lissten"},
		"AFileThatIsNoYAML":     {file: "listen: [", want: "configuration file"},
		"AnAddressWithoutPort":  {set: func(c *Config) { c.Listen = "localhost" }, want: "localhost"},
		"AShortAdminToken":      {set: func(c *Config) { c.AdminToken = "short" }, want: "16"},
		"AMemoryThatIsTooSmall": {set: func(c *Config) { c.Defaults.MemoryMB = 1 }, want: "memory_mb"},
		"AnUnknownKindOfLayers": {set: func(c *Config) { c.Native.Layers = "zfs" }, want: "zfs"},
		"ADefaultOverTheMost":   {set: func(c *Config) { c.Ceilings.Max.MemoryMB = 256 }, want: "limits.max"},
		"AMostThatIsNone":       {set: func(c *Config) { c.Ceilings.Max.CPU = 65 }, want: "limits.max"},
		"LessThanNoneAtOnce":    {set: func(c *Config) { c.Ceilings.AtOnce.Creates = -1 }, want: "limits.at_once.creates"},
		"AWaitOfDays":           {set: func(c *Config) { c.Ceilings.AtOnce.Wait = 48 * time.Hour }, want: "limits.at_once.wait"},
		"AnUnknownBound":        {file: "limits: {max: {memory: 1}}\n", want: "memory"},
		"ANegativeClock":        {set: func(c *Config) { c.Defaults.Retention = -1 }, want: "retention"},
		"AnUnknownLogFormat":    {set: func(c *Config) { c.Log.Format = "xml" }, want: "xml"},
		"AnUnknownProfile":      {set: func(c *Config) { c.MCP.Profile = "nonsense" }, want: "nonsense"},
		"EventsKeptForSeconds":  {set: func(c *Config) { c.Events.Keep = time.Second }, want: "events.keep"},
		"EventsKeptByTheDozen":  {set: func(c *Config) { c.Events.Count = 12 }, want: "events.keep_count"},
		"ANegativeBoundOfRuns":  {set: func(c *Config) { c.Runs.Artifacts.MaxFiles = -1 }, want: "runs.artifacts.max_files"},
		"AnUnknownGroupOfTools": {set: func(c *Config) { c.MCP.Groups = []string{"stat"} }, want: "stat"},
	} {
		t.Run(name+"IsRefused", func(t *testing.T) {
			c := DefaultConfig()
			var err error
			if row.file != "" {
				err = c.ReadFile(write(t, row.file))
			} else {
				row.set(&c)
				err = c.Check()
			}
			if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want an invalid that says %q", err, row.want)
			}
		})
	}
	t.Run("AnUnknownLogLevelIsRefused", func(t *testing.T) {
		c := DefaultConfig()
		err := c.ReadEnv(func(k string) string {
			if k == "SANDPIT_LOG_LEVEL" {
				return "loud"
			}
			return ""
		})
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "loud") {
			t.Errorf("got %v", err)
		}
	})
}

func TestADataDirectoryHasOneOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, err := lockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockData(dir); !fault.Is(err, fault.State) || !strings.Contains(err.Error(), "has a server already") {
		t.Errorf("a second lock: got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockData(dir)
	if err != nil {
		t.Fatalf("after the owner ended: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v; want 0700", st.Mode(), err)
	}
}
