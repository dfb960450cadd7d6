package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// record is what is known of one cell; its JSON form is the file that BENCH_JSON names.
type record struct {
	Work    string             `json:"work"`
	Peer    string             `json:"peer"`
	Workers int                `json:"workers"`
	Median  float64            `json:"median_ns"`
	Min     float64            `json:"min_ns"`
	Runs    int                `json:"runs"`
	Extra   map[string]float64 `json:"extra,omitempty"` // medians of the other results
	Noisy   int                `json:"noisy,omitempty"` // samples that others disturbed, in Runs or left out
	Fixed   bool               `json:"-"`               // the peer has no number of workers to choose
}

// quietEnough is how many undisturbed samples make the disturbed ones unnecessary.
const quietEnough = 3

// settle makes the record of a cell. Whether a sample counts depends on what other processes used of the CPUs while it was
// taken, never on its result.
func settle(j job, samples []sample) record {
	quiet := slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.foreign > noisyCores })
	noisy := len(samples) - len(quiet)
	if len(quiet) < quietEnough {
		quiet = samples
	}
	r := record{Work: j.work.name, Peer: j.peer.name, Workers: j.workers, Runs: len(quiet), Noisy: noisy}
	byName := map[string][]float64{}
	for _, s := range quiet {
		for name, value := range s.values {
			byName[name] = append(byName[name], value)
		}
	}
	r.Median, r.Min = median(byName["ns"]), slices.Min(byName["ns"])
	delete(byName, "ns")
	for name, all := range byName {
		if r.Extra == nil {
			r.Extra = map[string]float64{}
		}
		r.Extra[name] = median(all)
	}
	return r
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// records are the cells that have samples, in the order of the table.
func (b *bench) records() []record {
	all := []record{}
	for _, group := range groups(b.jobs) {
		for _, j := range group {
			if samples := b.samples[j.String()]; len(samples) > 0 {
				r := settle(j, samples)
				r.Fixed = b.offers[j.cell()] == 1
				all = append(all, r)
			}
		}
	}
	return all
}

func writeJSON(path string, all []record) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// find looks for the cell of a column that belongs beside `workers` workers: the one with as many, or the only one of a peer
// that has no number of workers to choose. Where a peer lacks a work, one like it may stand in.
func find(all []record, name, column string, workers int) (record, bool) {
	for _, r := range all {
		at := slices.IndexFunc(peers, func(p peer) bool { return p.name == r.Peer })
		if r.Work == name && peers[at].column == column && (r.Workers == workers || r.Fixed) {
			return r, true
		}
	}
	at := slices.IndexFunc(works, func(w work) bool { return w.name == name })
	if like := works[at].like; like != "" && !slices.Contains(subjects, column) {
		return find(all, like, column, workers)
	}
	return record{}, false
}

// own finds weft's cell.
func own(all []record, name string, workers int) (record, bool) {
	for _, subject := range subjects {
		if r, ok := find(all, name, subject, workers); ok {
			return r, true
		}
	}
	return record{}, false
}

// report is everything as Markdown.
func (b *bench) report(programs string) string {
	all := b.records()
	var t strings.Builder
	fmt.Fprintf(&t, "# Benchmark results\n\n%s\n", machine(programs))
	fmt.Fprintf(&t, "Rounds: %d, interleaved, a process for each sample.", b.rounds)
	if b.scale != 1 {
		fmt.Fprintf(&t, " **Counts scaled by %g: not a measurement.**", b.scale)
	}
	noisy, total := 0, 0
	for _, r := range all {
		noisy += r.Noisy
	}
	for _, samples := range b.samples {
		total += len(samples)
	}
	fmt.Fprintf(&t, " During %d of %d samples other processes used more than %g cores.\n\n", noisy, total, noisyCores)
	t.WriteString("A cell is the median, the least, and in parentheses weft's median over this one: below 1, weft needs less. bench/README.md " +
		"explains the rows and the peers.\n\n")
	t.WriteString(table(all, "per", mainRows()))
	if more := table(all, "result", moreRows()); strings.Count(more, "\n") > 2 {
		t.WriteString("\n## Beyond the time\n\nMedians, and weft's over each.\n\n" + more)
	}
	if reached := goalTable(all); reached != "" {
		t.WriteString("\n## What weft wants to reach\n\n" + reached)
	}
	if len(b.failures) > 0 {
		t.WriteString("\n## Failed\n\n")
		for _, f := range b.failures {
			fmt.Fprintf(&t, "- %s\n", strings.ReplaceAll(f, "\n", " "))
		}
	}
	return t.String()
}

// row says which result of which work stands in a row.
type row struct {
	work   work
	metric string // "" is the time itself
	label  string
}

func mainRows() []row {
	var rows []row
	for _, w := range works {
		rows = append(rows, row{w, "", w.per})
	}
	return rows
}

func moreRows() []row {
	var rows []row
	for _, w := range works {
		for _, m := range w.more {
			rows = append(rows, row{w, m, m})
		}
	}
	return rows
}

// metric reads a result of a record: its median time, or another.
func (r record) metric(name string) (float64, bool) {
	if name == "" || name == "ns" {
		return r.Median, true
	}
	v, ok := r.Extra[name]
	return v, ok
}

func table(all []record, what string, rows []row) string {
	var used []string // columns with anything in them
	for _, c := range columns {
		if slices.ContainsFunc(rows, func(at row) bool {
			return slices.ContainsFunc([]int{1, 2}, func(workers int) bool {
				r, ok := find(all, at.work.name, c, workers)
				_, has := r.metric(at.metric)
				return ok && has
			})
		}) {
			used = append(used, c)
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "| work | %s | workers | %s |\n|---|---|---|%s\n", what, strings.Join(used, " | "), strings.Repeat("---|", len(used)))
	for _, at := range rows {
		for _, workers := range []int{1, 2} {
			cells := make([]string, len(used))
			empty := true
			weft, _ := own(all, at.work.name, workers)
			for i, c := range used {
				cells[i] = "-"
				if r, ok := find(all, at.work.name, c, workers); ok {
					if _, has := r.metric(at.metric); has {
						cells[i] = cell(r, weft, at.metric)
						empty = empty && r.Work != at.work.name
					}
				}
			}
			if !empty {
				fmt.Fprintf(&t, "| %s | %s | %d | %s |\n", at.work.name, at.label, workers, strings.Join(cells, " | "))
			}
		}
	}
	return t.String()
}

// cell is "12.3 / 11.9 ns (0.42)"; the peer's name is added where a column has several.
func cell(r, weft record, metric string) string {
	value, _ := r.metric(metric)
	text := show(metric, value)
	if metric == "" {
		text = pair(r.Median, r.Min)
	}
	if ours, ok := weft.metric(metric); ok && weft.Peer != "" && !slices.Contains(subjects, r.Peer) && value > 0 {
		text += fmt.Sprintf(" (%s)", digits(ours/value))
	}
	if at := slices.IndexFunc(peers, func(p peer) bool { return p.name == r.Peer }); peers[at].column != r.Peer {
		text += " " + r.Peer
	}
	return text
}

// pair is "12.3 / 11.9 ns".
func pair(median, least float64) string {
	first, second := show("", median), show("", least)
	if unit := second[strings.LastIndex(second, " "):]; strings.HasSuffix(first, unit) {
		first = strings.TrimSuffix(first, unit)
	}
	return first + " / " + second
}

// show writes a value with the unit that its name tells.
func show(metric string, value float64) string {
	switch {
	case metric != "" && !strings.HasSuffix(metric, "ns"):
		return digits(value)
	case value >= 1e6:
		return digits(value/1e6) + " ms"
	case value >= 1e3:
		return digits(value/1e3) + " us"
	default:
		return digits(value) + " ns"
	}
}

// digits writes three significant digits, and whole numbers whole.
func digits(value float64) string {
	if math.Abs(value) >= 100 || value == 0 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.*f", max(0, 2-int(math.Floor(math.Log10(math.Abs(value))))), value)
}

// machine tells where the numbers come from.
func machine(programs string) string {
	read := func(path string) string { text, _ := os.ReadFile(path); return strings.TrimSpace(string(text)) }
	model := "unknown CPU"
	for line := range strings.Lines(read("/proc/cpuinfo")) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%d CPUs (%s), Linux %s; %s; %s.\n", runtime.NumCPU(), model, read("/proc/sys/kernel/osrelease"),
		read(filepath.Join(programs, "compiler.txt")), runtime.Version())
}
