#!/bin/sh
# Runs a command, or code in Python, in a new sandbox, and deletes that afterwards. The exit status is the
# command's.
set -u
sandpit=${SANDPIT:-sandpit}

usage() {
	cat >&2 <<'END'
usage: run_in_sandbox.sh (--command TEXT | --code TEXT) [--repo URL] [--keep] [--image NAME] [--allow WHAT]... [--network MODE] [--volume NAME:PATH]
  --command TEXT   shell text to run
  --code TEXT      Python to run
  --repo URL       clone this repository into /workspace/repo first
  --keep           keep the sandbox; its id is said on standard error
  --image NAME     what to run on
  --allow WHAT     a preset such as python, or a name, that it may reach; may be given again
  --network MODE   off, restricted or open
  --volume WHAT    mount a volume: NAME:PATH
END
	exit 2
}

# The arguments of sandpit run are collected in "$@", behind those that are still to be read.
command= code= n=$#
while [ "$n" -gt 0 ]; do
	option=$1
	shift
	n=$((n - 1))
	case $option in
	--keep)
		set -- "$@" --keep
		continue
		;;
	--command | --code | --repo | --image | --allow | --network | --volume) ;;
	*) usage ;;
	esac
	[ "$n" -gt 0 ] || usage
	value=$1
	shift
	n=$((n - 1))
	case $option in
	--command) command=$value ;;
	--code) code=$value ;;
	*) set -- "$@" "$option=$value" ;;
	esac
done

if [ -n "$command" ] && [ -z "$code" ]; then
	exec "$sandpit" run --no-stdin "$@" --command="$command"
elif [ -n "$code" ] && [ -z "$command" ]; then
	exec "$sandpit" run --no-stdin "$@" -- python3 -c "$code"
fi
usage
