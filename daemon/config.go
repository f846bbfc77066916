// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"sandpit.dev/access/bearer"
	"sandpit.dev/access/issuer"
	"sandpit.dev/access/session"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/toolset"
	"sandpit.dev/blob/configured"
	"sandpit.dev/engine/defaults"
	"sandpit.dev/engine/prewarm"
	"sandpit.dev/fault"
	"sandpit.dev/network/preview"
	"sandpit.dev/sandbox"
	"sandpit.dev/settings"
)

// Config is a server's whole configuration. Values come from the defaults here, then a YAML file,
// then SANDPIT_* in the environment, then flags: the later wins. An unknown key of the file is an
// error.
type Config struct {
	Listen     string          `yaml:"listen"`  // host:port
	TLS        TLSConfig       `yaml:"tls"`     // another address, with TLS
	Domain     string          `yaml:"domain"`  // a name of the server, below which previews and api.DOMAIN are; "": none
	Data       string          `yaml:"data"`    // directory of everything that lasts
	Hosts      []string        `yaml:"hosts"`   // names that requests may be addressed to, beside loopback and Listen's own
	Origins    []string        `yaml:"origins"` // web origins that may call, beside same-origin pages
	Public     []string        `yaml:"public"`  // what is served without a token: connect, metrics, openapi
	Console    ConsoleConfig   `yaml:"console"`
	Daytona    WireConfig      `yaml:"daytona"`
	Gateway    WireConfig      `yaml:"gateway"`
	Orkestr    WireConfig      `yaml:"orkestr"`
	AdminToken string          `yaml:"admin_token" secret:"true"` // "": one is made and kept in Data/admin-token
	Issuers    []issuer.Config `yaml:"issuers"`                   // whose tokens are taken beside the server's own
	RunDir     string          `yaml:"run_dir"`                   // where local clients look for the server; "": the user's own place

	Images   ImagesConfig     `yaml:"images"`
	Log      LogConfig        `yaml:"log"`
	Preview  PreviewConfig    `yaml:"preview"`
	MCP      MCPConfig        `yaml:"mcp"`
	Runs     RunsConfig       `yaml:"runs"`
	Events   EventsConfig     `yaml:"events"`
	Webhooks WebhooksConfig   `yaml:"webhooks"`
	Audit    AuditConfig      `yaml:"audit"`
	Usage    UsageConfig      `yaml:"usage"`
	Answers  AnswersConfig    `yaml:"answers"`
	Archive  configured.Place `yaml:"archive"` // where the disks of archived sandboxes are; nothing: in the data directory
	Network  NetworkConfig    `yaml:"network"`
	Secrets  SecretsConfig    `yaml:"secrets"`
	Tracing  TracingConfig    `yaml:"tracing"`

	Defaults Defaults     `yaml:"defaults"`
	Ceilings LimitsConfig `yaml:"limits"`
	Promises `yaml:",inline"`
	// Sizes are names for limits of CPU and memory, beside small, medium and large, or in their place; an
	// empty one removes one.
	Sizes map[string]SizeConfig `yaml:"sizes"`
	Pools []PoolConfig          `yaml:"pools"`
	// Templates are those that all projects have, by name; see docs/templates.md.
	Templates map[string]TemplateConfig `yaml:"templates"`
	// DefaultTemplate is that of a create which names neither an image nor a template, in a project
	// without a default of its own; "": the one that a call set.
	DefaultTemplate string `yaml:"default_template"`
	Runtimes        `yaml:",inline"`
	// AllowRoot lets commands run as a sandbox's own root.
	AllowRoot bool `yaml:"allow_root"`
	// AllowedVariables are names and patterns of the variables that requests may set for a sandbox;
	// empty: all.
	AllowedVariables []string `yaml:"allowed_variables"`
	// PrebuildImage builds the default image in the background when it is missing.
	PrebuildImage bool `yaml:"prebuild_image"`

	withoutEffect []string      // variables of mcp-sandboxd, with the reason
	base          settings.Base // the settings, with where each comes from
	steps         steps         // where each key comes from
}

// LogConfig configures the log.
type LogConfig struct {
	Level  slog.Level `yaml:"level"`  // debug, info, warn, error
	Format string     `yaml:"format"` // text, json
	File   string     `yaml:"file"`   // "": standard error
	// MaxMB is the size at which a new file is begun; the one before is kept.
	MaxMB int `yaml:"max_mb"`
	// Requests, MCP and Tools add a line for each request over HTTP, message of an MCP client, and call
	// of a tool.
	Requests bool `yaml:"requests"`
	MCP      bool `yaml:"mcp"`
	Tools    bool `yaml:"tools"`
}

// EventsConfig is the retention of events; zero fields take the value named behind them.
type EventsConfig struct {
	Keep  time.Duration `yaml:"keep"`       // 2160h, which is 90 days
	Count int           `yaml:"keep_count"` // of a project, the oldest go first: 1000000
}

func (c EventsConfig) check() error {
	if c.Keep < 0 || c.Keep > 0 && c.Keep < time.Minute {
		return fault.InvalidField("events.keep", "%v is less than a minute", c.Keep).WithRemedy("write it as 2160h for 90 days; leave it out for that")
	}
	if c.Count < 0 || c.Count > 0 && c.Count < 1000 {
		return fault.InvalidField("events.keep_count", "%d is less than 1000", c.Count)
	}
	return nil
}

// MCPConfig configures what agents see.
type MCPConfig struct {
	// Groups of tools that are switched on, or with a - before the name off; all but
	// state are on. See docs/mcp.md.
	Groups []string `yaml:"groups"`
	// Profile is the set of tools at /mcp, where the token has none of its own; "":
	// sandpit.
	Profile string `yaml:"profile"`
	// Path is where MCP is served, too, beside /mcp; "": nowhere else.
	Path string `yaml:"path"`
	// Descriptions are what tools say to models, by profile and tool: in place of ours, or behind it.
	Descriptions map[string]map[string]DescriptionConfig `yaml:"descriptions"`
}

// NetworkConfig bounds what sandboxes may reach.
type NetworkConfig struct {
	// MaxMode is the widest mode that a sandbox may ask for: off, restricted, open.
	MaxMode string `yaml:"max_mode"`
	// Curated are the names that a sandbox reaches which asks for mode restricted
	// without a list.
	Curated []string `yaml:"curated"`
	// Default is what a sandbox may reach for which a caller asks for nothing: off, open, or
	// presets, names and addresses with commas.
	Default string `yaml:"default"`
	// Ask is what tools may ask a person to let a sandbox reach: nothing, presets or names, which
	// is the default and means both. Asking grants nothing.
	Ask string `yaml:"ask"`
	// Elicit has the MCP client that asks show its person a form, whose answer grants or denies: false
	// unless it is set. The server cannot tell a person from a program that answers forms.
	Elicit bool `yaml:"elicit"`
	// AllowPrivate are ranges beyond the public internet that sandboxes may reach, as
	// far as their own policy allows. The host's own addresses are not among them
	// unless each is named.
	AllowPrivate []string `yaml:"allow_private"`
	// Block are ranges that no sandbox reaches.
	Block []string `yaml:"block"`
	// Presets are lists of names that a policy may name, beside those that there are, or in their
	// place; an empty one removes one. See docs/network.md.
	Presets map[string][]string `yaml:"presets"`
	// CAFiles are files of certificates, in PEM, of authorities that sandboxes and builds of images
	// trust besides the usual ones.
	CAFiles []string `yaml:"ca_files"`
	// Names bounds the names that each sandbox may make up below one entry of its list, and
	// so what questions can carry out.
	Names NamesConfig `yaml:"names"`
}

// NamesConfig is an [egress.Quota]; zero fields are those of the default.
type NamesConfig struct {
	Different          int `yaml:"different"` // names at once
	DifferentPerMinute int `yaml:"different_per_minute"`
	Questions          int `yaml:"questions"` // at once, for whichever name
	QuestionsPerMinute int `yaml:"questions_per_minute"`
}

// PreviewConfig configures the addresses of previews.
type PreviewConfig struct {
	// Domain is the domain below which each preview has its own host name, {port}-{id}.Domain;
	// these names have to lead to the server. "none": previews are reached by path alone.
	Domain string `yaml:"domain"`
	// Max says who may see previews at most: private (whoever has a token or a link), or public, where a sandbox's
	// owner can have all or some ports shown to everyone.
	Max string `yaml:"max"`
}

// PoolConfig is a pool: sandboxes that run before they are asked for. See [prewarm.Pool].
type PoolConfig struct {
	Name     string  `yaml:"name"`      // "": the image's, or recent
	Image    string  `yaml:"image"`     // "": the images that the last creates asked for
	Template string  `yaml:"template"`  // one of Templates, whose image and limits it has
	Size     string  `yaml:"size"`      // one of the sizes; cpu_cores and memory_mb go before it
	CPU      float64 `yaml:"cpu_cores"` // limits that are left out are the defaults'
	MemoryMB int     `yaml:"memory_mb"`
	DiskMB   int     `yaml:"disk_mb"`
	Pids     int     `yaml:"pids"`
	Min      int     `yaml:"min"`    // so many are kept ready
	Max      int     `yaml:"max"`    // and so many where more are asked for; 0: min
	Refill   int     `yaml:"refill"` // so many are made at a time; 0: 1
}

// Defaults are the values for a sandbox whose request leaves them out.
type Defaults struct {
	CPU            float64       `yaml:"cpu_cores"`
	MemoryMB       int           `yaml:"memory_mb"`
	DiskMB         int           `yaml:"disk_mb"`
	Pids           int           `yaml:"pids"`
	IdleTimeout    time.Duration `yaml:"idle_timeout"`
	Retention      time.Duration `yaml:"retention"`
	CommandTimeout time.Duration `yaml:"command_timeout"`
}

// defaultPool is how many sandboxes a server keeps ready by default.
const defaultPool = 2

// localDomain is the domain of previews as shipped.
const localDomain = "localhost"

// noDomain is what is said in place of a domain where there is none.
const noDomain = "none"

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	l := sandbox.DefaultLimits()
	c := Config{
		Listen: "127.0.0.1:8080",
		Data:   "/var/lib/sandpit",
		Log:    LogConfig{Level: slog.LevelInfo, Format: "text", MaxMB: 64},
		// The metrics cover all projects.
		Public: []string{publicConnect, publicOpenAPI},
		// It leads to the machine that asks, which is the one that the server is on.
		Preview: PreviewConfig{Domain: localDomain, Max: privatePreviews},
		Console: ConsoleConfig{Enabled: true, Idle: session.DefaultIdle, Life: session.DefaultLife}, Daytona: WireConfig{Enabled: true}, Gateway: WireConfig{Enabled: true}, Orkestr: WireConfig{Enabled: true},
		Network: NetworkConfig{MaxMode: string(sandbox.NetworkOpen)},
		Pools:   []PoolConfig{{Min: defaultPool}},
		Defaults: Defaults{
			CPU: l.CPU, MemoryMB: l.MemoryMB, DiskMB: l.DiskMB, Pids: l.Pids,
			IdleTimeout: sandbox.DefaultIdleTimeout, Retention: sandbox.DefaultRetention, CommandTimeout: 5 * time.Minute,
		},
		Promises:      Promises{Overcommit: defaultOvercommit()},
		AllowRoot:     true,
		PrebuildImage: true,
	}
	c.base = settings.Base{Values: c.values()}
	c.steps.take(&c, settings.Default)
	return c
}

// ReadFile overrides fields of c by the YAML file at path.
func (c *Config) ReadFile(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "the configuration file %s cannot be read", path)
	}
	const remedy = "correct the file; docs/operations.md and docs/network.md say what its keys do"
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		why := strings.TrimPrefix(err.Error(), "yaml: ")
		return fault.Wrap(fault.Invalid, err, "the configuration file %s is not valid YAML: %s", path, why).WithRemedy(remedy)
	}
	if wrong := configMistakes(&doc); len(wrong) > 0 {
		return fault.New(fault.Invalid, "the configuration file %s, %s", path, strings.Join(wrong, "; ")).WithRemedy(remedy)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return fault.Wrap(fault.Invalid, err, "the configuration file %s: %v", path, err)
	}
	c.note(settings.File)
	return nil
}

// ReadEnv overrides fields of c by the variables that getenv knows.
func (c *Config) ReadEnv(getenv func(string) string) error {
	if err := c.readSandboxd(getenv); err != nil {
		return err
	}
	variables := map[string]any{
		"SANDPIT_LISTEN": &c.Listen, "SANDPIT_DOMAIN": &c.Domain,
		"SANDPIT_TLS_CERT": &c.TLS.Cert, "SANDPIT_TLS_KEY": &c.TLS.Key, "SANDPIT_TLS_LISTEN": &c.TLS.Listen,
		"SANDPIT_DATA": &c.Data, "SANDPIT_IMAGES": &c.Images.Dir,
		"SANDPIT_ADMIN_TOKEN": &c.AdminToken, "SANDPIT_RUN_DIR": &c.RunDir, "SANDPIT_ARCHIVE_DIR": &c.Archive.Dir,
		"SANDPIT_SECRETS_KEY": &c.Secrets.Keys, "SANDPIT_SECRETS_KEY_FILE": &c.Secrets.KeyFile,
		"SANDPIT_LOG_FORMAT": &c.Log.Format, "SANDPIT_LOG_FILE": &c.Log.File, "SANDPIT_MCP_PROFILE": &c.MCP.Profile,
		"SANDPIT_MAX_MEMORY_MB": &c.Ceilings.Max.MemoryMB, "SANDPIT_MAX_DISK_MB": &c.Ceilings.Max.DiskMB, "SANDPIT_MAX_PIDS": &c.Ceilings.Max.Pids,
	}
	for name, p := range c.Archive.S3.Environment.Variables() {
		variables[name] = p
	}
	if err := readVariables(variables, getenv); err != nil {
		return err
	}
	for _, k := range c.Runtimes.list() { // several may know one
		if err := readVariables(k.Variables(), getenv); err != nil {
			return err
		}
	}
	if v := getenv("SANDPIT_MAX_CPU_CORES"); v != "" {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return fault.InvalidField("SANDPIT_MAX_CPU_CORES", "%q is not a valid number", sandbox.Clip(v, 20))
		}
		c.Ceilings.Max.CPU = n
	}
	if v := getenv("SANDPIT_POOL"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > prewarm.MaxPoolSize {
			return fault.InvalidField("SANDPIT_POOL", "%q is not a number of sandboxes, 0 to %d", sandbox.Clip(v, 20), prewarm.MaxPoolSize)
		}
		if c.Pools = nil; n > 0 {
			c.Pools = []PoolConfig{{Min: n}}
		}
	}
	if v := getenv("SANDPIT_PREVIEW_DOMAIN"); v != "" {
		c.Preview.Domain = v
	}
	switch v := getenv("SANDPIT_PUBLIC"); v {
	case "":
	case "none":
		c.Public = nil
	default:
		c.Public = strings.Split(v, ",")
	}
	if v := getenv("SANDPIT_RUNTIMES"); v != "" {
		c.Runtimes.Names = strings.Split(v, ",")
	}
	if v := getenv("SANDPIT_HOSTS"); v != "" {
		c.Hosts = strings.Split(v, ",")
	}
	if v := getenv("SANDPIT_MCP_GROUPS"); v != "" {
		c.MCP.Groups = strings.Split(v, ",")
	}
	if v := getenv("SANDPIT_LOG_LEVEL"); v != "" {
		if err := c.Log.Level.UnmarshalText([]byte(v)); err != nil {
			return fault.InvalidField("SANDPIT_LOG_LEVEL", "%q is not debug, info, warn or error", sandbox.Clip(v, 20))
		}
	}
	if err := c.Tracing.readEnv(getenv); err != nil {
		return err
	}
	c.note(settings.Environment)
	return nil
}

// Check checks c and makes its paths absolute.
func (c *Config) Check() error {
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fault.InvalidField("listen", "%q is not host:port", sandbox.Clip(c.Listen, 80)).
			WithRemedy("write it as 127.0.0.1:8080")
	}
	if c.AdminToken != "" {
		if err := bearer.CheckAdminToken(c.AdminToken); err != nil {
			return err
		}
	}
	if err := c.checkDomain(); err != nil {
		return err
	}
	if err := c.TLS.check(c.Listen); err != nil {
		return err
	}
	if c.Preview.Domain == noDomain {
		c.Preview.Domain = ""
	}
	if err := preview.CheckDomain("preview.domain", c.Preview.Domain); err != nil {
		return err
	}
	if err := c.Console.check(); err != nil {
		return err
	}
	if err := toolset.CheckGroups("mcp.groups", c.MCP.Groups); err != nil {
		return err
	}
	if err := c.Tracing.check(); err != nil {
		return err
	}
	if err := checkMCPPath(c.MCP.Path); err != nil {
		return err
	}
	if err := mcp.CheckProfile("mcp.profile", c.MCP.Profile); err != nil {
		return err
	}
	for _, name := range c.Public {
		if !slices.Contains([]string{publicConnect, publicMetrics, publicOpenAPI}, name) {
			return fault.InvalidField("public", "%q is not connect, metrics or openapi", sandbox.Clip(name, 20))
		}
	}
	if err := c.Runs.check(); err != nil {
		return err
	}
	if err := cmp.Or(c.Events.check(), c.Audit.check()); err != nil {
		return err
	}
	if err := c.Usage.check(); err != nil {
		return err
	}
	if err := c.Answers.check(); err != nil {
		return err
	}
	if err := c.Archive.Check("archive"); err != nil {
		return err
	}
	switch c.Log.Format {
	case "text", "json":
	default:
		return fault.InvalidField("log.format", "%q is not text or json", sandbox.Clip(c.Log.Format, 20))
	}
	if c.Log.MaxMB < 1 || c.Log.MaxMB > 1<<20 {
		return fault.InvalidField("log.max_mb", "%d is outside 1 to %d", c.Log.MaxMB, 1<<20)
	}
	if err := c.Runtimes.check(); err != nil {
		return err
	}
	if err := issuer.Check(c.Issuers); err != nil {
		return err
	}
	if err := c.checkLimits(); err != nil {
		return err
	}
	if err := c.Ceilings.AtOnce.check(); err != nil {
		return err
	}
	if _, err := c.Ceilings.Requests.rates(); err != nil {
		return err
	}
	if err := c.Promises.check(); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{
		"defaults.idle_timeout": c.Defaults.IdleTimeout, "defaults.retention": c.Defaults.Retention,
		"defaults.command_timeout": c.Defaults.CommandTimeout,
	} {
		if d < 0 || d > sandbox.MaxClock {
			return fault.InvalidField(name, "%v is outside 0s to %v", d, sandbox.MaxClock)
		}
	}
	for _, p := range []*string{&c.Data, &c.TLS.Cert, &c.TLS.Key, &c.Images.Dir, &c.Images.Catalogue, &c.Secrets.KeyFile, &c.Log.File, &c.Runs.Artifacts.Dir, &c.Archive.Dir, &c.Archive.S3.CredentialsFile} {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("make %s absolute: %w", *p, err)
		}
		*p = abs
	}
	for i, name := range c.Network.CAFiles {
		if name == "" {
			return fault.InvalidField("network.ca_files", "the name of file %d is empty", i+1)
		}
		abs, err := filepath.Abs(name)
		if err != nil {
			return fmt.Errorf("make %s absolute: %w", name, err)
		}
		c.Network.CAFiles[i] = abs
	}
	if c.Images.Dir == "" {
		c.Images.Dir = filepath.Join(c.Data, "images")
	}
	if err := defaults.CheckVariables("allowed_variables", c.AllowedVariables); err != nil {
		return err
	}
	if c.Images.ProjectMaxMB < 0 || c.Images.ProjectMaxMB > 1<<30 {
		return fault.InvalidField("images.project_max_mb", "%d is outside 0 to %d", c.Images.ProjectMaxMB, 1<<30)
	}
	return c.Images.policy().Check()
}

// LimitsConfig bounds what sandboxes may ask for, and how many requests there are.
type LimitsConfig struct {
	Max      MaxLimits     `yaml:"max"`
	Requests RequestLimits `yaml:"requests"`
	AtOnce   AtOnceConfig  `yaml:"at_once"`
}

// MaxLimits is the most that a sandbox may ask for. The default is the host's cores, 80 % of its
// memory, the general maximum for the rest, and never less than the default limits.
type MaxLimits struct {
	CPU      float64 `yaml:"cpu_cores"`
	MemoryMB int     `yaml:"memory_mb"`
	DiskMB   int     `yaml:"disk_mb"`
	Pids     int     `yaml:"pids"`
}
