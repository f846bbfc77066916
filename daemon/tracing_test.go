// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sandpit.dev/fault"
)

func TestTracingIsConfiguredByTheFileAndByOpenTelemetrysVariables(t *testing.T) {
	half := 0.5
	file := TracingConfig{Endpoint: "http://file:4318", Sample: &half}
	for _, c := range []struct {
		env     string
		to      string
		sample  float64
		service string
	}{
		{"", "http://file:4318/v1/traces", 0.5, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=https://env:1/base/", "https://env:1/base/v1/traces", 0.5, ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://env:1 OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces:2/in", "http://traces:2/in", 0.5, ""},
		{"OTEL_TRACES_SAMPLER=parentbased_traceidratio OTEL_TRACES_SAMPLER_ARG=0.25 OTEL_SERVICE_NAME=mine OTEL_RESOURCE_ATTRIBUTES=service.name=other,deployment.environment=a%20b", "http://file:4318/v1/traces", 0.25, "mine"},
		{"OTEL_TRACES_SAMPLER=always_off OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf OTEL_TRACES_EXPORTER=otlp", "http://file:4318/v1/traces", 0, ""},
		{"OTEL_SDK_DISABLED=TRUE OTEL_EXPORTER_OTLP_ENDPOINT=http://env:1", "", 0.5, ""},
		{"OTEL_TRACES_EXPORTER=none OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://env:1", "", 0.5, ""},
	} {
		cfg := file
		if err := cfg.readEnv(variables(c.env)); err != nil {
			t.Errorf("%s: %v", c.env, err)
			continue
		}
		to, err := cfg.target()
		if err != nil || cfg.check() != nil || to != c.to || *cfg.Sample != c.sample || cfg.service != c.service {
			t.Errorf("%s: got %q, %v, %q, %v", c.env, to, *cfg.Sample, cfg.service, err)
		}
	}
	for _, bad := range []string{
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json", "OTEL_TRACES_EXPORTER=zipkin", "OTEL_TRACES_SAMPLER=jaeger_remote", "OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=2",
		"OTEL_TRACES_SAMPLER=traceidratio OTEL_TRACES_SAMPLER_ARG=NaN", "OTEL_EXPORTER_OTLP_TIMEOUT=soon", "OTEL_EXPORTER_OTLP_ENDPOINT=env:1", "OTEL_EXPORTER_OTLP_ENDPOINT=http://user:secret@env", "OTEL_EXPORTER_OTLP_ENDPOINT=file:///etc",
		"OTEL_EXPORTER_OTLP_HEADERS=secret", "OTEL_EXPORTER_OTLP_HEADERS=a=secret%zz", "OTEL_EXPORTER_OTLP_CERTIFICATE=/ca.pem", "OTEL_RESOURCE_ATTRIBUTES=x",
	} {
		cfg := file
		err := cfg.readEnv(variables(bad))
		if err == nil {
			err = cfg.check()
		}
		if !fault.Is(err, fault.Invalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
	var shipped Config = DefaultConfig()
	if err := shipped.ReadEnv(variables("")); err != nil {
		t.Fatal(err)
	}
	if to, err := shipped.Tracing.target(); to != "" || err != nil {
		t.Errorf("as shipped traces go to %q, %v", to, err)
	}
	if made, err := shipped.Tracing.open("v1", prometheus.NewRegistry(), slog.Default()); made.tracer != nil || made.exporter != nil || made.store(nil) != nil || err != nil {
		t.Errorf("as shipped there is %+v, %v", made, err)
	}
}

// variables is an environment of NAME=VALUE, with spaces between.
func variables(text string) func(string) string {
	all := make(map[string]string)
	for one := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(one, "=")
		all[name] = value
	}
	return func(name string) string { return all[name] }
}

func TestTracesAreSentToWhereTheConfigurationSays(t *testing.T) {
	type sent struct {
		path, key string
		body      []byte
	}
	got := make(chan sent, 1)
	system := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- sent{r.URL.Path, r.Header.Get("X-Key"), body}
	}))
	defer system.Close()
	var cfg TracingConfig
	if err := cfg.readEnv(variables("OTEL_EXPORTER_OTLP_ENDPOINT=" + system.URL + " OTEL_EXPORTER_OTLP_HEADERS=X-Key=a%2Cb OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test%20bench")); err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewPedanticRegistry()
	var log bytes.Buffer
	made, err := cfg.open("v1.2.3", reg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	made.tracer.Root("something", time.Now()).End()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is left is sent
	if err := made.exporter.Run(ctx); err != nil {
		t.Fatal(err)
	}
	s := <-got
	for _, want := range []string{"service.name", "sandpit", "v1.2.3", "deployment.environment", "test bench", "something"} {
		if !bytes.Contains(s.body, []byte(want)) {
			t.Errorf("%q is not in %q", want, s.body)
		}
	}
	if s.path != "/v1/traces" || s.key != "a,b" || strings.Contains(log.String(), "a,b") {
		t.Errorf("got %s %s; the log has %s", s.path, s.key, &log)
	}
	families, err := reg.Gather()
	if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 3 {
		t.Fatalf("got %v, %v", families, err)
	}
	for _, m := range families[0].GetMetric() {
		if want := map[string]float64{"sent": 1}[m.GetLabel()[0].GetValue()]; m.GetCounter().GetValue() != want {
			t.Errorf("got %v", m)
		}
	}
}
