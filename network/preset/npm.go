// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package preset

import (
	"regexp"
	"strings"
)

// npmHomes are where npm's own program is, as upstream, and as distributions put it.
var npmHomes = [...]string{"usr/local/lib/node_modules/npm", "usr/lib/node_modules/npm", "usr/share/nodejs/npm"}

// npm returns the hosts that npm fetches from on m: those of its settings, and of its own default
// where these name no registry.
func npm(m Machine, _ *Machine) []string {
	homes := m.Homes
	if len(homes) == 0 {
		homes = []string{""}
	}
	var out []string
	for _, home := range homes {
		registry, scoped := npmSays(m, home)
		if registry == "" {
			out = append(out, npmDefault(m)...)
		} else {
			out = append(out, hosts(registry)...)
		}
		out = append(out, hosts(scoped...)...)
	}
	return out
}

// npmSays returns what npm's files and variables say of registries, to a user of m.
func npmSays(m Machine, home string) (registry string, scoped []string) {
	var files []string
	for _, dir := range npmHomes {
		files = append(files, dir+"/npmrc")
	}
	files = append(files, "usr/etc/npmrc", "usr/local/etc/npmrc", "etc/npmrc")
	if home != "" {
		files = append(files, home+"/.npmrc")
	}
	for _, f := range files { // the later goes over the earlier
		one, more := npmSettings(m.read(f, maxSettings))
		if one != "" {
			registry = one
		}
		scoped = append(scoped, more...)
	}
	if v := m.env("npm_config_registry", "NPM_CONFIG_REGISTRY"); v != "" {
		registry = v
	}
	return registry, scoped
}

// npmSettings reads what an npmrc says of registries: the one for all, and those for scopes.
func npmSettings(text string) (registry string, scoped []string) {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(key, "#") || strings.HasPrefix(key, ";") {
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch key = strings.TrimSpace(key); {
		case key == "registry":
			registry = value
		case strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry"):
			scoped = append(scoped, value)
		}
	}
	return registry, scoped
}

// npmRegistry finds the registry that npm has for a default in its own program.
var npmRegistry = regexp.MustCompile("(?:Definition|define)\\(\\s*['\"]registry['\"],\\s*\\{\\s*default:\\s*['\"`](https?://[^'\"`\\s]+)")

func npmDefault(m Machine) []string {
	for _, dir := range npmHomes {
		for _, file := range []string{"/node_modules/@npmcli/config/lib/definitions/definitions.js", "/lib/utils/config/definitions.js"} {
			if found := npmRegistry.FindStringSubmatch(m.read(dir+file, maxProgram)); found != nil {
				return hosts(found[1])
			}
		}
	}
	return nil
}
