// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sudo

import (
	"slices"
	"strings"
)

// Variables that a dynamic loader, a C library, a shell or an interpreter reads at its start, and would run or load
// something by, and those that sudo itself sets. No option passes them. A name that ends in * stands for all that
// begin so.
var never = []string{
	"PATH", "_", "OLDPWD", "PWD", "SUDO_*",
	// The loader and the C library.
	"LD_*", "_RLD*", "DYLD_*", "LIBPATH", "SHLIB_PATH", "GLIBC_TUNABLES", "GCONV_PATH", "GETCONF_DIR", "LOCPATH", "LOCALDOMAIN", "RES_OPTIONS",
	"HOSTALIASES", "NLSPATH", "PATH_LOCALE", "RESOLV_*", "NIS_PATH", "MALLOC_*", "TZDIR", "NSS_*",
	// Terminal descriptions.
	"TERMINFO", "TERMINFO_DIRS", "TERMPATH", "TERMCAP",
	// Shells.
	"IFS", "CDPATH", "ENV", "BASH_ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "GLOBIGNORE", "BASH_XTRACEFD", "BASH_LOADABLES_PATH",
	"ZDOTDIR", "FPATH", "NULLCMD", "READNULLCMD", "TMPPREFIX", "FISH_*", "__fish*", "INPUTRC", "KSH_*",
	// Interpreters and what they load.
	"PYTHON*", "PERL*", "RUBY*", "GEM_*", "BUNDLE_*", "BUNDLER_*", "NODE_*", "NPM_CONFIG_*", "npm_config_*", "BUN_*", "DENO_*", "ELECTRON_*",
	"JAVA_*", "_JAVA_*", "JDK_*", "CLASSPATH", "MAVEN_*", "GRADLE_*", "PHP*", "LUA_*", "TCL*", "R_*", "DOTNET_*", "CORECLR_*", "COMPlus_*", "MONO_*",
	"GUILE_*", "ERL_*", "ELIXIR_*", "JULIA_*", "OCAML*", "CAML*", "GHC*", "VIRTUAL_ENV", "CONDA_*", "OPENSSL_*", "GIT_EXEC_PATH", "GIT_SSH*", "GIT_CONFIG*",
	"GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_PAGER", "GIT_EDITOR", "GST_*", "GTK_*", "QT_*", "LESSOPEN", "LESSCLOSE", "MANPAGER", "KRB5_*", "AUTHSTATE",
}

// harmless are those of the patterns above that no program loads anything by.
var harmless = []string{"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONUTF8", "PYTHONHASHSEED", "NODE_ENV", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"}

// always are those that pass without being asked for: how the terminal is and what language its user reads, which
// way leads to the network, and which certificates the sandbox trusts.
var always = []string{
	"TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "LC_*", "TZ", "DEBIAN_FRONTEND",
	"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
}

// own are the target's, which -E does not change.
var own = []string{"HOME", "USER", "LOGNAME", "SHELL", "MAIL", "USERNAME", "XDG_*"}

func matches(list []string, name string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		if prefix, ok := strings.CutSuffix(p, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return p == name
	})
}

// Always reports whether a variable passes without being asked for.
func Always(name string) bool { return matches(always, name) }

// MaySet reports whether VAR=value on the command line may set a variable.
func MaySet(name string) bool {
	if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasSuffix(name, "()") || strings.HasSuffix(name, "%%") {
		return false
	}
	return !matches(never, name) || matches(harmless, name)
}

// passes reports whether a caller's variable passes, with -E or without.
func passes(name, value string, all bool) bool {
	switch {
	case !Always(name) && (!all || !MaySet(name) || matches(own, name)):
		return false
	case strings.HasPrefix(value, "()"): // a function to a shell
		return false
	}
	if name == "TERM" || name == "LANG" || name == "LANGUAGE" || name == "TZ" || strings.HasPrefix(name, "LC_") {
		// Libraries open a file by these.
		return !strings.Contains(value, "%") && !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, ":") && !strings.Contains(value, "..") &&
			(name == "TZ" || !strings.Contains(value, "/"))
	}
	return true
}

// Environment returns base with what passes of a request, or the names that it may not set.
func (r *Request) Environment(base []string) (env, refused []string) {
	values := make(map[string]string)
	put := func(v string) { name, value, _ := strings.Cut(v, "="); values[name] = value }
	for _, v := range r.Env {
		if name, value, ok := strings.Cut(v, "="); ok && passes(name, value, r.AllEnv) {
			put(v)
		}
	}
	for _, v := range base {
		put(v)
	}
	for _, v := range r.Set {
		if name, value, _ := strings.Cut(v, "="); !MaySet(name) || strings.HasPrefix(value, "()") {
			refused = append(refused, name)
			continue
		}
		put(v)
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, refused
}
