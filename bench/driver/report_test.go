package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func peerNamed(t *testing.T, name string) peer {
	t.Helper()
	for _, p := range peers {
		if p.name == name {
			return p
		}
	}
	t.Fatalf("no peer %s", name)
	return peer{}
}

func workNamed(t *testing.T, name string) work {
	t.Helper()
	for _, w := range works {
		if w.name == name {
			return w
		}
	}
	t.Fatalf("no work %s", name)
	return work{}
}

// filled is a bench with these samples of ns, keyed WORK/PEER/WORKERS.
func filled(t *testing.T, cells map[string][]float64, workers map[string]int) *bench {
	t.Helper()
	b := &bench{offers: map[string]int{}, samples: map[string][]sample{}, scale: 1, rounds: 5}
	for key, times := range cells {
		name, peerName, _ := strings.Cut(key, "/")
		j := job{work: workNamed(t, name), peer: peerNamed(t, peerName), workers: workers[key]}
		b.jobs = append(b.jobs, j)
		b.offers[j.cell()] = 2
		if slices.Contains([]string{"std_async", "resume_loop", "futex"}, peerName) {
			b.offers[j.cell()] = 1
		}
		for _, ns := range times {
			b.samples[j.String()] = append(b.samples[j.String()], sample{values: values{"ns": ns, "p99_ns": 10 * ns}})
		}
	}
	return b
}

func TestMedianOfOddAndEvenCounts(t *testing.T) {
	for _, c := range []struct {
		all  []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{8, 2, 4, 6}, 5}} {
		if got := median(c.all); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.all, got, c.want)
		}
	}
}

func TestDisturbedSamplesAreLeftOutWhenThereAreEnoughOthers(t *testing.T) {
	j := job{work: works[0], peer: peers[0], workers: 1}
	quiet := func(ns float64) sample { return sample{values{"ns": ns}, 0} }
	noisy := func(ns float64) sample { return sample{values{"ns": ns}, 1} }
	if r := settle(j, []sample{quiet(10), noisy(1), quiet(12), noisy(90), quiet(11)}); r.Median != 11 || r.Min != 10 || r.Runs != 3 || r.Noisy != 2 {
		t.Errorf("three quiet ones: %+v", r)
	}
	if r := settle(j, []sample{quiet(10), noisy(2), noisy(90)}); r.Median != 10 || r.Min != 2 || r.Runs != 3 || r.Noisy != 2 {
		t.Errorf("one quiet one: %+v", r)
	}
}

func TestJSONHasWhatReadersExpect(t *testing.T) {
	b := filled(t, map[string][]float64{"wake/weft": {5, 1, 3}}, map[string]int{"wake/weft": 2})
	path := filepath.Join(t.TempDir(), "out.json")
	if err := writeJSON(path, b.records()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 {
		t.Fatalf("%d records", len(got))
	}
	for key, want := range map[string]any{"work": "wake", "peer": "weft", "workers": 2.0, "median_ns": 3.0, "min_ns": 1.0, "runs": 3.0} {
		if got[0][key] != want {
			t.Errorf("%s is %v, want %v", key, got[0][key], want)
		}
	}
	if extra := got[0]["extra"].(map[string]any); extra["p99_ns"] != 30.0 {
		t.Errorf("extra is %v", extra)
	}
}

func TestRatiosStandBesideTheRightNumberOfWorkers(t *testing.T) {
	b := filled(t, map[string][]float64{"chain/weft": {10}, "chain/asio": {40}, "chain/resume_loop": {8}, "chain/std_async": {1000}},
		map[string]int{"chain/weft": 2, "chain/asio": 1, "chain/resume_loop": 1})
	all := b.records()
	for _, c := range []struct {
		column  string
		workers int
		want    string
	}{
		{"limit", 1, "resume_loop"}, {"limit", 2, "resume_loop"}, // one thread for both
		{"std_async", 1, "std_async"}, {"std_async", 2, "std_async"},
		{"weft", 2, "weft"}, {"weft", 1, ""}, // 2 workers say nothing about 1
	} {
		r, _ := find(all, "chain", c.column, c.workers)
		if r.Peer != c.want {
			t.Errorf("%s for %d workers: %q, want %q", c.column, c.workers, r.Peer, c.want)
		}
	}
	text := table(all, "per", mainRows())
	if r, _ := own(all, "chain", 2); r.Peer != "weft" {
		t.Errorf("own is %q", r.Peer)
	}
	for _, want := range []string{"8.00 / 8.00 ns (1.25) resume_loop", "1.00 / 1.00 us (0.0100)", "| chain | hop | 2 | 10.0 / 10.0 ns |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestGoalsAreJudgedByTheRunThatMeasuredThem(t *testing.T) {
	both := map[string]int{"chain/weft": 2, "chain/asio": 2, "chain/resume_loop": 1, "wake/weft": 1, "wake/futex": 1}
	b := filled(t, map[string][]float64{"chain/weft": {10}, "chain/asio": {90}, "chain/resume_loop": {8}, "wake/weft": {15}, "wake/futex": {10}}, both)
	text := goalTable(b.records())
	for _, want := range []string{
		"| chain | over resume_loop's | 2 | 1.25 | 2.00 | yes |",
		"| chain | over asio's | 2 | 0.111 | 0.100 | **no** |",
		"| wake | over futex's | 1 | 1.50 | 1.20 | **no** |",
		"| wake, p99_ns | over futex's | 1 | 1.50 | 2.00 | yes |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "tbb") || strings.Count(text, "\n") != 2+4 {
		t.Errorf("goals without results:\n%s", text)
	}
}

func TestGoalsNameWhatExists(t *testing.T) {
	for _, g := range goals {
		workNamed(t, g.work)
		if g.peer != "" {
			peerNamed(t, g.peer)
		}
	}
}

func TestDigitsAreThreeAndUnitsFollowTheName(t *testing.T) {
	for _, c := range []struct {
		metric string
		value  float64
		want   string
	}{
		{"", 12.345, "12.3 ns"}, {"", 0, "0 ns"}, {"p99_ns", 4567, "4.57 us"}, {"", 100.2e6, "100 ms"},
		{"cpu_percent", 0.0123456, "0.0123"}, {"bytes", 1234.5, "1234"},
	} {
		if got := show(c.metric, c.value); got != c.want {
			t.Errorf("show(%q, %v) = %q, want %q", c.metric, c.value, got, c.want)
		}
	}
}

func TestMachineLoadIsReadFromTheFirstLine(t *testing.T) {
	if got := parseStat("cpu  100 20 3 99999 5 6 7 0 0 0"); got != 123*tick {
		t.Errorf("got %v", got)
	}
	if got := parseStat("intr 1 2 3"); got != 0 {
		t.Errorf("got %v", got)
	}
}

func TestTheCInterfaceStandsInWhereTheLayerHasNothing(t *testing.T) {
	b := filled(t, map[string][]float64{"timer_cancel/weft_c": {30}, "timer_cancel/go": {300}},
		map[string]int{"timer_cancel/weft_c": 1, "timer_cancel/go": 1})
	all := b.records()
	if text := table(all, "per", mainRows()); !strings.Contains(text, "300 / 300 ns (0.100)") {
		t.Errorf("no ratio in\n%s", text)
	}
	if text := goalTable(all); !strings.Contains(text, "| timer_cancel | over go's | 1 | 0.100 | 0.200 | yes |") {
		t.Errorf("no goal in\n%s", text)
	}
}

func TestAPairSharesItsUnit(t *testing.T) {
	for want, c := range map[string][2]float64{"12.3 / 11.9 ns": {12.34, 11.9}, "1.20 us / 900 ns": {1200, 900}, "100 / 100 ms": {1e8, 1e8}} {
		if got := pair(c[0], c[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestALikeWorkStandsInForPeersOnly(t *testing.T) {
	b := filled(t, map[string][]float64{"chain/weft": {10}, "chain_spawn/weft": {20}, "chain/go": {100}, "chain/weft_c": {5}},
		map[string]int{"chain/weft": 1, "chain_spawn/weft": 1, "chain/go": 1, "chain/weft_c": 1})
	text := table(b.records(), "per", mainRows())
	if want := "| chain_spawn | hop | 1 | 20.0 / 20.0 ns | - | 100 / 100 ns (0.200) |"; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
	alone := filled(t, map[string][]float64{"chain/go": {100}}, map[string]int{"chain/go": 1})
	if text := table(alone.records(), "per", mainRows()); strings.Contains(text, "chain_spawn") {
		t.Errorf("a row of stand-ins only:\n%s", text)
	}
}
