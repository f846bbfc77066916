// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"sandpit.dev/access/issuer"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/rest"
	"sandpit.dev/build"
	"sandpit.dev/build/contexts"
	"sandpit.dev/code"
	"sandpit.dev/engine"
	"sandpit.dev/engine/events"
	imagekeeper "sandpit.dev/engine/images"
	"sandpit.dev/engine/languages"
	"sandpit.dev/engine/meter"
	"sandpit.dev/engine/metrics"
	"sandpit.dev/engine/overview"
	"sandpit.dev/engine/retention"
	"sandpit.dev/engine/templates"
	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
	"sandpit.dev/image"
	catalogue "sandpit.dev/image/entry"
	"sandpit.dev/internal/cleanup"
	"sandpit.dev/internal/running"
	"sandpit.dev/internal/sysmon"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/permit"
	"sandpit.dev/network/policy"
	"sandpit.dev/projects"
	"sandpit.dev/redact/redactlog"
	"sandpit.dev/runs"
	"sandpit.dev/store/keyed"
	"sandpit.dev/store/sqlstore"
)

// Options configure Run, beside the configuration.
type Options struct {
	Version string
	Log     io.Writer // required
	// Agent is the sandbox's process 1; nil: the one in this binary.
	Agent []byte
	// Adopt lets the server accept a data directory that it would refuse otherwise.
	Adopt Adopt
	// Ready is called once, when the server answers, with its base URL.
	Ready func(url string)
}

const (
	drainTimeout = 10 * time.Second // for requests in flight when the server ends
	headTimeout  = 30 * time.Second // for a request's head to come: a host that is busy ten times over may itself take ten to read one
	idleTimeout  = 5 * time.Minute  // for the next request on a connection
	// maxHead leaves room for the longest path of a file with each byte escaped, and the other
	// headers. It is small because a head is read before its token is known, at the cost of others.
	maxHead = 16 << 10
)

// Run runs the server: it returns when ctx is done and everything is closed, or when it could not
// start. Sandboxes keep running.
func Run(ctx context.Context, cfg Config, opts Options) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	sysmon.Calm()
	var down cleanup.Stack
	defer down.Run()
	out := opts.Log
	if cfg.Log.File != "" {
		file, err := openLogFile(cfg.Log.File, int64(cfg.Log.MaxMB)<<20)
		if err != nil {
			return err
		}
		down.Add(func() { _ = file.Close() })
		out = file
	}
	secrets := redactlog.New()
	var switches logSwitches
	switches.level.Set(cfg.Log.Level)
	log := slog.New(secrets.Handler(logger(out, cfg.Log.Format, &switches.level).Handler()))
	down.Add(captureStandardLog(log))
	for _, v := range cfg.withoutEffect {
		log.Warn("a variable of the environment has no effect here", "variable", v)
	}
	files, err := checkDescriptors(log)
	if err != nil {
		return err
	}

	lowerScore("/proc/self/oom_score_adj", log)
	lock, err := lockData(cfg.Data)
	if err != nil {
		return err
	}
	down.Add(func() { _ = lock.Close() })
	report(log, "remove what is left of a backup", sqlstore.RemoveCopy(filepath.Join(cfg.Data, copyFile)))
	// Listen early: a taken port should not cost a repair first.
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return fault.Wrap(fault.Unavailable, err, "cannot listen on %s", cfg.Listen).
			WithRemedy("choose another address with --listen")
	}
	down.Add(func() { _ = listener.Close() })
	url := "http://" + reachable(listener.Addr())
	secure, secured, err := cfg.TLS.open(log)
	if err != nil {
		return err
	}
	if secure != nil {
		down.Add(func() { _ = secure.Close() })
	}

	host := cfg.Runtimes.host()
	self, err := identify(ctx, cfg.Data, host, opts.Adopt, log)
	if err != nil {
		return err
	}
	claim, err := self.claim(ctx)
	if err != nil {
		return err
	}
	down.Add(func() { _ = claim.Close() })
	if host != nil {
		tellUndue(ctx, host, cfg.Data, self.Namespace, log)
	}
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(cfg.Data, dbFile), ID: self.ID, Logger: log})
	if err != nil {
		return err
	}
	down.Add(func() { report(log, "close the store", db.Close()) })
	registry := newRegistry()
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sandpit_records_full", Help: "1 while the disk that holds the records has no room for new work.",
	}, func() float64 {
		if db.Room() != nil {
			return 1
		}
		return 0
	}))
	network, err := cfg.Network.options()
	if err != nil {
		return err
	}
	network.Builds = build.Project
	entries, err := catalogue.Catalogue(cfg.Images.Catalogue)
	if err != nil {
		return err
	}
	registries, err := registriesOf(cfg.Images.Registries, os.Getenv)
	if err != nil {
		return err
	}
	built := make(chan struct{}, 1)
	images, err := image.Open(image.Options{
		Changed: func() {
			select {
			case built <- struct{}{}:
			default:
			}
		},
		Dir: cfg.Images.Dir, Entries: entries, Authorities: network.Authorities, Policy: cfg.Images.policy(),
		Public: policy.Public, Registries: registries, ProjectBytes: int64(cfg.Images.ProjectMaxMB) << 20, Roots: rootsOf(network.Authorities), References: cfg.Runtimes.bringsImages(), Logger: log,
	})
	if err != nil {
		return err
	}
	down.Add(func() { report(log, "close the images", images.Close()) })
	drivers, err := cfg.Runtimes.open(ctx, cfg.Data, self, opts, images, &down, log)
	if err != nil {
		return err
	}
	left := orphansOf(ctx, drivers, cfg.Data, log)
	disks := hostDriversOf(drivers)
	self.confirm(cfg.Data, host, disks.identified(), log)
	db.Follow(disks)

	memory := cfg.Answers.openMemory(os.DirFS("/"), os.Getenv, log)
	seals, err := openKeys(cfg)
	if err != nil {
		return err
	}
	most, err := cfg.hostMost()
	if err != nil {
		return err
	}
	audited, err := cfg.openAudit(ctx, db, self.ID, secrets, opts.Version, log)
	if err != nil {
		return err
	}
	down.Add(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditCloses)
		defer cancel()
		report(log, "close the audit log", audited.Close(ctx))
	})
	quotas, err := cfg.openQuotas(ctx, audited.Store(), drivers, log)
	if err != nil {
		return err
	}
	used := usage.New(quotas.Store(), usage.Options{Keep: cfg.Usage.Keep, Logger: log})
	traces, err := cfg.Tracing.open(opts.Version, registry, log)
	if err != nil {
		return err
	}
	changes := events.New(used.Store(), events.Options{Object: rest.EventObject, Logger: log})
	keys := keyed.New(traces.store(changes.Store()), keyed.Options{Logger: log})
	archives, err := cfg.archives()
	if err != nil {
		return err
	}
	pools, err := cfg.poolsWith(ctx, keys.Store(), images, log)
	if err != nil {
		return err
	}
	up, started := templates.Late()
	counted := metrics.New(registry)
	eng, err := engine.New(engine.Options{
		Store:    keys.Store(),
		Runtimes: drivers,
		Default:  cfg.Runtimes.wanted()[0].Name(),
		Images:   images,
		Policy:   cfg.Images.policy(),
		Defaults: engine.Defaults{
			Limits: cfg.Limits(), Most: most, IdleTimeout: orNever(cfg.Defaults.IdleTimeout), Retention: orNever(cfg.Defaults.Retention),
			CommandTimeout: cfg.Defaults.CommandTimeout, ForbidRoot: !cfg.AllowRoot,
		},
		Network:  network,
		Archives: archives,
		Pools:    pools,
		Up:       up,
		Events:   retention.Options{Keep: cfg.Events.Keep, Count: cfg.Events.Count},
		Version:  opts.Version,
		Logger:   log,
		Keys:     seals,
		Redact:   secrets,
		Metrics:  counted,
	})
	if err != nil {
		return err
	}
	builder := build.New(eng, build.Options{Host: func() (build.Host, error) { return hostOfBuilds(network.Authorities) }, Images: images, Logger: log})
	images.Use(builder)
	brings := newBringer(eng, images, drivers, &cfg.Runtimes)
	begins := &templateImages{Service: builder, store: images, catalogue: imagekeeper.NewCatalogue(eng), brings: brings}
	made, err := newTemplates(eng, &cfg, network.Rules, begins, log)
	if err != nil {
		return err
	}
	started(made)
	changeable, err := openSettings(ctx, keys.Store(), &inForce{engine: eng, images: images, most: most, rules: network.Rules, config: &cfg, quotas: quotas, log: &switches}, log)
	if err != nil {
		return err
	}
	creator := &templates.Creator{Engine: eng, Templates: made, Bring: brings.bring}
	begins.keeper = imagekeeper.New(creator, images, copiesOf(drivers, log)...)
	sent, err := contexts.Open(contexts.Options{Dir: filepath.Join(cfg.Data, "contexts"), Room: images.Room, Logger: log})
	if err != nil {
		return err
	}
	codes := code.New(eng, code.Options{Memory: memory, Metrics: code.NewMetrics(registry), Logger: log})
	servers := languages.New(eng, languages.Options{Logger: log})
	runner := runs.New(creator, keys.Store(), cfg.runs(log, runs.NewMetrics(registry)))
	tokens, err := openTokens(cfg, keys.Store(), log)
	if err != nil {
		return err
	}
	issuers, err := issuer.New(cfg.Issuers, issuer.Options{Logger: log})
	if err != nil {
		return err
	}
	links, err := openLinks(cfg)
	if err != nil {
		return err
	}
	if err := tokens.ServeSandboxes(links.key, eng); err != nil {
		return err
	}
	eng.OnDeleted(tokens.EndSandbox)
	rates, err := cfg.Ceilings.Requests.rates()
	if err != nil {
		return err
	}
	hooks, err := cfg.Webhooks.open(keys.Store(), changes, seals, network.Operator.Block, opts.Version, log)
	if err != nil {
		return err
	}
	checks := newDoctor(cfg, eng, keys.Store(), drivers)
	down.Add(func() { closeDoctor(checks, log) })
	stats := meter.New(keys.Store(), drivers, meter.Options{Host: hostUse(cfg.Data), Network: eng.Carried, Logger: log})
	registry.MustRegister(stats.Collector())
	s, err := newSurfaces(surfaceParts{
		languages: servers,
		engine:    creator, runs: runner, code: codes, requests: ask.NewDesk(eng, func() permit.Rules { return eng.Settings().Network }, nil), images: begins.keeper, dockerfiles: builder, contexts: sent, tokens: tokens, console: cfg.Console, daytona: cfg.Daytona, gateway: cfg.Gateway, orkestr: cfg.Orkestr, backups: newBackups(eng, db, cfg, opts.Version, log), keys: keys, links: links, registry: registry, hosts: cfg.names(), origins: cfg.Origins, public: cfg.Public,
		toolGroups: cfg.MCP.Groups, toolProfile: cfg.MCP.Profile, version: opts.Version, log: log, memory: memory, settings: changeable, projects: projects.New(keys.Store(), quotas, log), switches: &switches, mcp: cfg.MCP, runDefaults: cfg.Runs.Defaults.runs(),
		rates: rates, issuers: issuers, usage: used, stats: stats, sizes: cfg.sizes(),
		audit: audited, doctor: checks, overview: overview.New(keys.Store(), stats, counted.Recent(), overview.Options{Files: openFiles, Drivers: drivers, Started: time.Now(), Logger: log}),
		events: changes, webhooks: hooks,
		gates:  cfg.Ceilings.AtOnce.gates(registry),
		tracer: traces.tracer,
	})
	if err != nil {
		return err
	}

	head := maxHead
	if len(cfg.Issuers) > 0 {
		head += issuer.MaxToken
	}
	bounded := guard.NewListener(listener, unprovenOf(files))
	server := &http.Server{
		Handler: s.handler, ConnContext: bounded.Context, ConnState: bounded.State, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: head,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug), TLSConfig: secured,
	}
	server.RegisterOnShutdown(s.close)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return eng.Run(ctx, builder.Resume, runner.Resume, made.Resume) })
	if host != nil {
		group.Go(func() error {
			removeAbandoned(ctx, host, log)
			return nil
		})
	}
	group.Go(func() error { return sent.Run(ctx) })
	group.Go(func() error { return tokens.Run(ctx) })
	group.Go(func() error { return issuers.Run(ctx) })
	group.Go(func() error { return keys.Run(ctx) })
	group.Go(func() error { return used.Run(ctx) })
	group.Go(func() error { return changes.Run(ctx) })
	group.Go(func() error { return changes.FollowImages(ctx, builtImages(images), built) })
	group.Go(func() error { return hooks.Run(ctx) })
	group.Go(func() error { return audited.Run(ctx) })
	group.Go(func() error { return stats.Run(ctx) })
	if traces.exporter != nil {
		group.Go(func() error { return traces.exporter.Run(ctx) })
	}
	group.Go(func() error {
		if err := server.Serve(bounded); !errors.Is(err, http.ErrServerClosed) {
			return fault.Wrap(fault.Unavailable, err, "the server stopped listening on %s", cfg.Listen)
		}
		return nil
	})
	if secure != nil {
		log.Info("listening with TLS", "address", secure.Addr().String(), "certificate", cfg.TLS.Cert)
		group.Go(func() error {
			if err := server.ServeTLS(bounded.Beside(secure), "", ""); !errors.Is(err, http.ErrServerClosed) {
				return fault.Wrap(fault.Unavailable, err, "the server stopped listening on %s", cfg.TLS.Listen)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if err := server.Shutdown(limit); err != nil {
			return server.Close()
		}
		return nil
	})
	group.Go(func() error { return tell(ctx, cfg, eng, brings.prebuild, url, opts, log) })
	err = group.Wait()
	left.remove(ctx, log)
	return err
}

// dbFile is the file in the data directory that holds the records.
const dbFile = "sandpit.db"

// tell waits until the server answers, publishes its address, and removes it at the end.
func tell(ctx context.Context, cfg Config, eng *engine.Engine, prebuild func(context.Context) error, url string, opts Options, log *slog.Logger) error {
	if err := eng.WaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	dir := cfg.RunDir
	if dir == "" {
		dir = running.Dir(os.Getuid(), "")
	}
	if err := running.Write(dir, running.Server{URL: url, Data: cfg.Data, PID: os.Getpid()}); err != nil {
		log.Warn("local clients cannot find this server", "error", err)
	}
	log.Info("ready", "url", url, "data", cfg.Data, "version", opts.Version)
	if opts.Ready != nil {
		opts.Ready(url)
	}
	if cfg.PrebuildImage {
		if err := prebuild(ctx); err != nil && ctx.Err() == nil {
			log.Error("the default image cannot be had ahead", "error", err)
		}
	}
	<-ctx.Done()
	return running.Remove(dir, os.Getpid())
}

// orNever translates a clock that the configuration switched off by zero: to the engine zero is
// the default, and less than zero never.
func orNever(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// reachable returns the address at which this machine's clients reach a listener, which may be on all addresses.
func reachable(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return a.String()
}

func hostOf(listen string) string {
	host, _, _ := net.SplitHostPort(listen)
	return host
}

func logger(w io.Writer, format string, level slog.Leveler) *slog.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

func report(log *slog.Logger, what string, err error) {
	if err != nil {
		log.Error(what, "error", err)
	}
}

// newRegistry returns a registry with the metrics of the process itself.
func newRegistry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
