// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sandpit.dev/access"
	"sandpit.dev/access/bearer"
	"sandpit.dev/access/issuer"
	"sandpit.dev/access/seen"
	"sandpit.dev/api/admitted"
	"sandpit.dev/api/filelink"
	"sandpit.dev/api/guard"
	"sandpit.dev/api/mcp"
	"sandpit.dev/api/mcp/profile/orkestr"
	"sandpit.dev/api/rest"
	"sandpit.dev/api/rest/clients"
	apiruns "sandpit.dev/api/runs"
	"sandpit.dev/api/service"
	"sandpit.dev/audit/recorder"
	"sandpit.dev/build/contexts"
	"sandpit.dev/code"
	"sandpit.dev/console"
	"sandpit.dev/doctor"
	"sandpit.dev/engine/events"
	"sandpit.dev/engine/files"
	"sandpit.dev/engine/fleet"
	"sandpit.dev/engine/images"
	"sandpit.dev/engine/meter"
	"sandpit.dev/engine/overview"
	"sandpit.dev/engine/ports"
	"sandpit.dev/engine/skills"
	"sandpit.dev/engine/templates"
	sandboxtokens "sandpit.dev/engine/tokens"
	"sandpit.dev/engine/usage"
	"sandpit.dev/fault"
	"sandpit.dev/internal/budget"
	"sandpit.dev/network/ask"
	"sandpit.dev/network/preview"
	"sandpit.dev/projects"
	"sandpit.dev/runs"
	"sandpit.dev/sandbox"
	"sandpit.dev/settings"
	"sandpit.dev/store/keyed"
	"sandpit.dev/trace"
	"sandpit.dev/webhooks"
)

// surfaceParts are the parameters of the surfaces.
type surfaceParts struct {
	engine         *templates.Creator
	runs           *runs.Runner
	code           *code.Service
	requests       *ask.Desk
	images         *images.Keeper
	dockerfiles    service.Dockerfiles
	contexts       *contexts.Store
	languages      service.Languages
	tokens         *bearer.Authority
	console        ConsoleConfig
	daytona        WireConfig
	gateway        WireConfig
	orkestr        WireConfig
	backups        *backups
	keys           *keyed.Keys
	links          links
	registry       *prometheus.Registry
	hosts, origins []string
	public         []string // of Config
	toolGroups     []string // of MCP
	toolProfile    string   // likewise
	version        string
	log            *slog.Logger
	memory         *budget.Budget // of all of them
	settings       *settings.Service
	rates          guard.Rates
	issuers        *issuer.Set
	projects       *projects.Service
	usage          *usage.Recorder
	audit          *recorder.Recorder
	stats          *meter.Service
	doctor         *doctor.Service
	overview       *overview.Service
	events         *events.Log
	webhooks       *webhooks.Service
	tracer         *trace.Tracer
	switches       *logSwitches
	mcp            MCPConfig
	runDefaults    runs.Defaults
	sizes          sandbox.Sizes
	gates          admitted.Gates
}

// surfaces is the handler of everything that the server answers over HTTP.
type surfaces struct {
	handler http.Handler
	close   func()
}

// What the operator can have served without a token, beside signed links and the health.
const (
	publicConnect = "connect"
	publicMetrics = "metrics"
	publicOpenAPI = "openapi"
)

// gatewayMetrics is where the MCP Gateway has its figures.
const gatewayMetrics = "/api/v1/metrics"

// newSurfaces makes the handler. A new surface is a line here.
func newSurfaces(p surfaceParts) (surfaces, error) {
	known := credentials{p.tokens, p.issuers}
	resources := p.resources()
	signIns := p.sessions(known)
	g, err := guard.New(guard.Options{
		Tokens: known, Sessions: signIns.checker(), Resources: resources, Hosts: p.hosts, Origins: p.origins, Requests: p.rates, Logger: p.log, Observe: observer(p.registry), Tracer: p.tracer, LogAll: p.switches.requests.Load, Project: p.hasProject, Record: p.audit.Answered,
	})
	if err != nil {
		return surfaces{}, err
	}
	doors := ports.New(p.engine.Engine)
	p.engine.OnSet(doors.SettingsChanged)
	framers := preview.Framers{Origins: p.origins}
	if p.console.Enabled {
		framers.Hosts = p.hosts
	}
	previews, err := newPreviews(p.links.ports, doors, known, g, framers, p.log)
	if err != nil {
		return surfaces{}, err
	}
	services := service.Of(p.engine, files.New(p.engine.Engine, 0), doors, p.code, p.runs, p.requests, skills.New(p.engine.Engine, skills.Options{}))
	services.Templates, services.Languages = p.engine.Templates, p.languages
	services.Keeper, services.Dockerfiles, services.Settings = p.images, p.dockerfiles, p.settings
	services.Usage, services.Stats, services.Audit, services.Events, services.Webhooks = p.usage, p.stats, p.audit, p.events, p.webhooks
	services.Fleet, services.Doctor, services.Overview = fleet.New(p.engine), p.doctor, p.overview
	services.Projects, services.Sizes = p.projects, p.sizes
	services.Tokens = sandboxtokens.New(p.engine.Engine, p.tokens)
	services = p.gates.Wrap(services)
	callers := new(seen.Log)
	api, err := rest.New(rest.Options{Clients: clients.API{Seen: callers, Profiles: mcp.Profiles()}, Services: services, Tokens: p.tokens, Backups: p.backups, Keys: p.keys, Previews: linkMaker{p.links.ports}, Files: p.links.files, Guard: g, Sessions: signIns.verbs(), Version: p.version, Memory: p.memory,
		PrivateDocument: !slices.Contains(p.public, publicOpenAPI)})
	if err != nil {
		return surfaces{}, err
	}
	tools, err := mcp.New(mcp.Options{Seen: callers, Services: services, Caller: guard.Caller, Record: p.audit.Answered, Groups: p.toolGroups, Profile: p.toolProfile, Files: p.links.files, Previews: linkMaker{p.links.ports}, Logger: p.log, Logs: mcp.Logs{Messages: p.switches.mcp.Load, Tools: p.switches.tools.Load}, Descriptions: p.mcp.descriptions(), Runs: p.runDefaults, Version: p.version, Memory: p.memory})
	if err != nil {
		return surfaces{}, err
	}
	coats, err := p.coats(g, services)
	if err != nil {
		return surfaces{}, err
	}
	mux := http.NewServeMux()
	toMCP := guard.Door{Via: "mcp"} // REST has its own
	mux.Handle("/mcp", g.Through(toMCP, tools))
	mux.Handle("/mcp/", g.Through(toMCP, tools))
	if p.mcp.Path != "" && p.mcp.Path != "/mcp" {
		mux.Handle(p.mcp.Path, g.Through(toMCP, under(p.mcp.Path, tools)))
		mux.Handle(p.mcp.Path+"/", g.Through(toMCP, under(p.mcp.Path, tools)))
	}
	mux.Handle(orkestr.Alias, g.Through(toMCP, tools))
	mux.Handle(filelink.Root, g.WrapLink(api.LinkedFiles(p.links.files)))
	mux.Handle("GET "+connectPath, publicly(g, slices.Contains(p.public, publicConnect), access.Admin, newConnect()))
	alive, ready := g.WrapOpen(health(func() error { return nil })), g.WrapOpen(health(p.engine.Health))
	figures := publicly(g, slices.Contains(p.public, publicMetrics), access.ServerAdmin, promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}))
	for path, h := range map[string]http.Handler{
		"/healthz": alive, "/readyz": ready, "/metrics": figures,
		// As the MCP Gateway has them.
		"/health": alive, "/ready": ready, gatewayMetrics: figures,
	} {
		mux.Handle("GET "+path, h)
	}
	mux.Handle("/{$}", newFrontDoor(g, p.public, p.console.Enabled, api))
	if p.console.Enabled {
		pages, err := console.New(console.Options{Frames: previews.FrameSource})
		if err != nil {
			return surfaces{}, err
		}
		mux.Handle(console.Root, g.WrapOpen(pages))
	}
	if len(resources) > 0 {
		told := g.WrapOpen(newMetadata(p.issuers, resources))
		mux.Handle("GET "+guard.MetadataPath, told)
		mux.Handle("GET "+guard.MetadataPath+"/", told)
	}
	mux.Handle("/.well-known/", g.WrapOpen(http.HandlerFunc(noSignIn)))
	mux.Handle("/register", g.WrapOpen(http.HandlerFunc(noSignIn)))
	mux.Handle("/", api) // which answers unknown paths in its own format
	artifacts := newArtifacts(g, p.runs, p.links.files)
	root := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Not through the mux, which answers odd paths with redirects: a file's
		// name may be odd, and the coat says what is wrong with one.
		if (strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/api/v1/")) && r.URL.Path != gatewayMetrics {
			api.ServeHTTP(w, r)
			return
		}
		for i := range coats {
			if strings.HasPrefix(r.URL.Path+"/", coats[i].base+"/") {
				coats[i].ServeHTTP(w, r)
				return
			}
		}
		if strings.HasPrefix(r.URL.Path, apiruns.Root) {
			artifacts.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
	return surfaces{handler: withPreviews(previews, g, root), close: func() {
		api.Close()
		tools.Close()
		for i := range coats {
			coats[i].close()
		}
		previews.Close()
	}}, nil
}

// hasProject returns fault.NotFound for a project without a record.
func (p *surfaceParts) hasProject(ctx context.Context, name string) error {
	_, err := p.projects.Get(ctx, access.Caller{Project: name, Actor: bearer.SystemName, Scopes: []access.Scope{access.ServerAdmin}}, name)
	return err
}

// checkMCPPath refuses a path where something else is served.
func checkMCPPath(p string) error {
	if p == "" || p == "/mcp" {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(p, "/"), "/")
	taken := []string{"", "mcp", "v1", "api", "connect", "healthz", "readyz", "health", "ready", "metrics", "register", ".well-known", "artifacts", "files", "preview", "console", "daytona", "daytona-contexts", "gateway", "orkestr"}
	if !strings.HasPrefix(p, "/") || path.Clean(p) != p || slices.Contains(taken, first) || strings.ContainsAny(p, "{} \t?#%") {
		return fault.InvalidField("mcp.path", "%q is not a path of its own, such as /tools", sandbox.Clip(p, 80))
	}
	return nil
}

// under serves what is at /mcp at another path.
func under(at string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.Path, u.RawPath = "/mcp"+strings.TrimPrefix(r.URL.Path, at), ""
		inner := r.WithContext(r.Context())
		inner.URL = &u
		h.ServeHTTP(w, inner)
	})
}

// publicly serves h to everybody, or else to who has a scope.
func publicly(g *guard.Guard, public bool, or access.Scope, h http.Handler) http.Handler {
	if public {
		return g.WrapOpen(h)
	}
	return g.Wrap("http", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := guard.Caller(r.Context())
		if err == nil {
			err = c.Require(or)
		}
		if err != nil {
			guard.Error(w, r, err)
			return
		}
		h.ServeHTTP(w, r)
	}))
}

func health(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := check(); err != nil {
			guard.NotYet(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"status": "ok"})
	})
}

// observer counts requests by route and status, never by a path of a caller's.
func observer(reg prometheus.Registerer) func(guard.Observation) {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sandpit_http_requests_total", Help: "HTTP requests that were answered."}, []string{"route", "status"})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "sandpit_http_request_seconds", Help: "How long HTTP requests took.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route"})
	reg.MustRegister(requests, seconds)
	return func(o guard.Observation) {
		requests.WithLabelValues(o.Route, strconv.Itoa(o.Status)).Inc()
		seconds.WithLabelValues(o.Route).Observe(float64(o.Duration) / float64(time.Second))
	}
}
