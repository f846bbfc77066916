// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"maps"
	"slices"
	"strings"

	"sandpit.dev/fault"
)

// HostHeaders are headers that the server sets in requests to hosts: by host (a name, or "*.name" for all below one), then by
// the header's name. They are no secrets.
type HostHeaders map[string]map[string]string

// Bounds of a policy's headers.
const (
	MaxHeaderHosts = 32
	MaxHostHeaders = 16 // of one host
	MaxHeaderValue = 1024
	MaxHeaderBytes = 16 << 10 // of all names and values
)

// Equal reports whether two say the same.
func (h HostHeaders) Equal(g HostHeaders) bool {
	return maps.EqualFunc(h, g, maps.Equal[map[string]string, map[string]string])
}

// texts returns hosts, names and values.
func (h HostHeaders) texts() (out []string) {
	for host, headers := range h {
		out = append(out, host)
		for name, value := range headers {
			out = append(out, name, value)
		}
	}
	return out
}

// normal returns the headers with hosts and names in the form that they are compared in. Hosts without headers are left out.
func (h HostHeaders) normal(field string, add func(error)) HostHeaders {
	if len(h) > MaxHeaderHosts {
		add(fault.InvalidField(field, "has %d hosts, and may have %d", len(h), MaxHeaderHosts))
		return nil
	}
	out := make(HostHeaders)
	total := 0
	for _, host := range slices.Sorted(maps.Keys(h)) {
		name, err := CheckDomain(field, host)
		if err != nil {
			add(err)
			continue
		}
		in := field + "." + name
		switch {
		case out[name] != nil:
			add(fault.InvalidField(in, "is there twice, in two spellings"))
			continue
		case len(h[host]) > MaxHostHeaders:
			add(fault.InvalidField(in, "has %d headers, and may have %d", len(h[host]), MaxHostHeaders))
			continue
		case len(h[host]) == 0:
			continue
		}
		set := make(map[string]string)
		for _, given := range slices.Sorted(maps.Keys(h[host])) {
			header, value := strings.ToLower(given), h[host][given]
			total += len(header) + len(value)
			switch err := checkHostHeader(in, header); {
			case err != nil:
				add(err)
			case hasHeader(set, header):
				add(fault.InvalidField(in, "has %q twice, in two spellings", Clip(header, 80)))
			case len(value) > MaxHeaderValue:
				add(fault.InvalidField(in, "%s has a value of %d bytes, more than %d", header, len(value), MaxHeaderValue))
			case !headerText(value):
				add(fault.InvalidField(in, "%s has a value with characters that a header cannot have (line ends, control characters), or with space around it: %q", header, Clip(value, 80)))
			default:
				set[header] = value
			}
		}
		out[name] = set
	}
	if total > MaxHeaderBytes {
		add(fault.InvalidField(field, "has names and values of %d bytes, more than %d", total, MaxHeaderBytes))
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// hasHeader reports whether a header is there, also by a name that servers take for it.
func hasHeader(set map[string]string, name string) bool {
	for has := range set {
		if strings.ReplaceAll(has, "_", "-") == strings.ReplaceAll(name, "_", "-") {
			return true
		}
	}
	return false
}

// checkHostHeader refuses invalid names, in lower case, and headers that say how the request is carried, whose it is, or by
// whom it was passed on.
func checkHostHeader(field, name string) error {
	if err := checkSecretHeader(strings.ReplaceAll(name, "_", "-")); err != nil {
		if validHeaderName(name) {
			return fault.InvalidField(field, "%q says how a request is carried, and is not set by a policy", Clip(name, 80))
		}
		return fault.InvalidField(field, "%q is not a valid header name (RFC 9110: letters, digits and !#$%%&'*+-.^_`|~, at most 128)", Clip(name, 80))
	}
	switch strings.ReplaceAll(name, "_", "-") {
	case "if-range", "a-im", "accept-charset", "content-range", "date", "forwarded", "http2-settings", "via":
		return fault.InvalidField(field, "%q says how a request is carried, and is not set by a policy", name)
	case "authorization", "cookie":
		return fault.InvalidField(field, "%q is a credential, and these values are shown to who may see the sandbox", name).
			WithRemedy("keep it as a secret that is bound to the host: sandpit secret set --host")
	}
	if strings.HasPrefix(name, "sec-") || strings.HasPrefix(name, "proxy-") {
		return fault.InvalidField(field, "%q says how a request is carried, and is not set by a policy", name)
	}
	return nil
}
