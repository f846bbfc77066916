// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"math"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/engine/traced"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
	"sandpit.dev/trace"
	"sandpit.dev/trace/otlp"
)

// TracingConfig configures traces, which are sent nowhere unless an endpoint is named. OpenTelemetry's own variables go
// before the file.
type TracingConfig struct {
	// Endpoint is the base URL of a tracing system that takes OTLP over HTTP, as http://localhost:4318; "": there is none.
	Endpoint string            `yaml:"endpoint"`
	Headers  map[string]string `yaml:"headers" secret:"true"` // of each request to it; they may be secrets
	// Sample is the share of requests whose traces are kept, 0 to 1, where the caller does not say; nil: 1.
	Sample *float64 `yaml:"sample"`
	// Commands adds the text of commands.
	Commands bool          `yaml:"commands"`
	Timeout  time.Duration `yaml:"timeout"` // of a request to it; 10s

	url      string // where traces go, of the variable that names all of it
	service  string
	resource []trace.Attribute
}

const tracesPath = "/v1/traces"

// readEnv overrides fields by OpenTelemetry's variables.
func (c *TracingConfig) readEnv(getenv func(string) string) error {
	// of returns the variable for traces alone, or that for all signals.
	of := func(name string) (v, variable string) {
		variable = "OTEL_EXPORTER_OTLP_TRACES_" + name
		if v = getenv(variable); v == "" {
			variable = "OTEL_EXPORTER_OTLP_" + name
			v = getenv(variable)
		}
		return v, variable
	}
	if v := getenv("OTEL_EXPORTER_OTLP_ENDPOINT"); v != "" {
		c.Endpoint = v
	}
	if v := getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"); v != "" {
		c.url = v
	}
	if v, name := of("HEADERS"); v != "" {
		headers, ok := pairs(v)
		if !ok {
			return fault.InvalidField(name, "it is not NAME=VALUE,NAME=VALUE with values as in a URL") // without the value: it may be a secret
		}
		c.Headers = headers
	}
	if v, name := of("TIMEOUT"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n <= 0 {
			return fault.InvalidField(name, "%q is not a number of milliseconds", sandbox.Clip(v, 20))
		}
		c.Timeout = time.Duration(n) * time.Millisecond
	}
	if v, name := of("PROTOCOL"); v != "" && v != "http/protobuf" {
		return fault.InvalidField(name, "%q is not spoken here", sandbox.Clip(v, 20)).WithRemedy("use http/protobuf, which every receiver of OTLP takes, by default at port 4318")
	}
	if v, name := of("CERTIFICATE"); v != "" {
		return fault.InvalidField(name, "it cannot be set").WithRemedy("authorities are those of the host, or of SSL_CERT_FILE")
	}
	if err := c.readSampler(getenv); err != nil {
		return err
	}
	c.service = getenv("OTEL_SERVICE_NAME")
	if v := getenv("OTEL_RESOURCE_ATTRIBUTES"); v != "" {
		all, ok := pairs(v)
		if !ok || len(all) > trace.MaxAttributes {
			return fault.InvalidField("OTEL_RESOURCE_ATTRIBUTES", "%q is not NAME=VALUE,NAME=VALUE with values as in a URL", sandbox.Clip(v, 80))
		}
		for name, value := range all {
			if name == "service.name" {
				if c.service == "" {
					c.service = value
				}
				continue
			}
			c.resource = append(c.resource, trace.Attribute{Key: name, Value: value})
		}
	}
	off := strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true")
	switch v := getenv("OTEL_TRACES_EXPORTER"); v {
	case "", "otlp":
	case "none":
		off = true
	default:
		return fault.InvalidField("OTEL_TRACES_EXPORTER", "%q is neither otlp nor none", sandbox.Clip(v, 20))
	}
	if off {
		c.Endpoint, c.url = "", ""
	}
	return nil
}

// readSampler reads which traces are kept. A caller's are kept where the caller keeps them.
func (c *TracingConfig) readSampler(getenv func(string) string) error {
	name := getenv("OTEL_TRACES_SAMPLER")
	switch strings.TrimPrefix(name, "parentbased_") {
	case "":
	case "always_on":
		c.Sample = new(1.0)
	case "always_off":
		c.Sample = new(0.0)
	case "traceidratio":
		share := 1.0
		if v := getenv("OTEL_TRACES_SAMPLER_ARG"); v != "" {
			var err error
			if share, err = strconv.ParseFloat(v, 64); err != nil {
				return fault.InvalidField("OTEL_TRACES_SAMPLER_ARG", "%q is not a number, 0 to 1", sandbox.Clip(v, 20))
			}
		}
		c.Sample = &share
	default:
		return fault.InvalidField("OTEL_TRACES_SAMPLER", "%q is not known here", sandbox.Clip(name, 40)).WithRemedy("use parentbased_always_on, parentbased_always_off or parentbased_traceidratio")
	}
	return nil
}

// pairs reads a list as W3C's Baggage has it.
func pairs(s string) (map[string]string, bool) {
	out := make(map[string]string)
	for part := range strings.SplitSeq(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || err != nil || name == "" {
			return nil, false
		}
		out[name] = value
	}
	return out, true
}

// target returns where traces are sent; "": nowhere.
func (c *TracingConfig) target() (string, error) {
	field, to := "tracing.endpoint", c.url
	if to == "" {
		if c.Endpoint == "" {
			return "", nil
		}
		to = strings.TrimSuffix(c.Endpoint, "/") + tracesPath
	} else {
		field = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	}
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", fault.InvalidField(field, "it is not an http or https URL without a user").WithRemedy("write it as http://localhost:4318")
	}
	return u.String(), nil
}

func (c *TracingConfig) check() error {
	if c.Sample != nil && (math.IsNaN(*c.Sample) || *c.Sample < 0 || *c.Sample > 1) {
		return fault.InvalidField("tracing.sample", "%v is outside 0 to 1", *c.Sample)
	}
	if c.Timeout < 0 || c.Timeout > 5*time.Minute {
		return fault.InvalidField("tracing.timeout", "%v is outside 0 to 5m", c.Timeout)
	}
	_, err := c.target()
	return err
}

// tracing is what makes traces, and sends them. Nil tracer: nothing does.
type tracing struct {
	tracer   *trace.Tracer
	exporter *otlp.Exporter
	commands bool
}

// open returns what the configuration asks for.
func (c *TracingConfig) open(version string, reg prometheus.Registerer, log *slog.Logger) (tracing, error) {
	to, err := c.target()
	if err != nil || to == "" {
		return tracing{}, err
	}
	service := c.service
	if service == "" {
		service = "sandpit"
	}
	host, _ := os.Hostname() // without a name it goes without
	e := otlp.New(otlp.Options{
		URL: to, Headers: c.Headers, Version: version, Timeout: c.Timeout, Logger: log,
		Resource: append([]trace.Attribute{{Key: "service.name", Value: service}, {Key: "service.version", Value: version}, {Key: "host.name", Value: host}}, c.resource...),
	})
	for result, read := range map[string]func(otlp.Counts) int64{
		"sent": func(n otlp.Counts) int64 { return n.Sent }, "dropped": func(n otlp.Counts) int64 { return n.Dropped }, "failed": func(n otlp.Counts) int64 { return n.Failed },
	} {
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "sandpit_trace_spans_total", Help: "Spans, by what became of them: dropped are those that found the queue full, failed those that the tracing system did not take.",
			ConstLabels: prometheus.Labels{"result": result},
		}, func() float64 { return float64(read(e.Counts())) }))
	}
	sample := 1.0
	if c.Sample != nil {
		sample = *c.Sample
	}
	u, _ := url.Parse(to) // which target has checked
	log.Info("traces are sent", "to", u.Host)
	return tracing{tracer: trace.New(trace.Options{Sample: sample, Export: e.Export}), exporter: e, commands: c.Commands}, nil
}

// store returns a store that makes spans of what is committed through it, or s where there is no tracer.
func (t tracing) store(s store.Store) store.Store {
	if t.tracer == nil {
		return s
	}
	return traced.New(s, t.tracer, traced.Options{Commands: t.commands}).Store()
}
