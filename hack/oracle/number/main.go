// Command number asks Go's strconv package, with which Flux parses the tags of a numerical policy, for the numbers of
// texts.
//
// It takes hand-picked texts and random mutations of these, with a fixed seed, and prints a JSON table: each text with
// either the bits of its number in hexadecimal, or the error.
//
// Usage: number [-seed N] [-count N] > testdata/number/table.json
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
)

// Row is one text with its number or error.
type Row struct {
	Text  string `json:"text"`
	Bits  string `json:"bits,omitempty"`
	Error string `json:"error,omitempty"`
}

var picked = []string{
	"", "0", "-0", "+0", "00", "007", "1", "-1", "+1", "--1", "+-1", "1.", ".1", ".", "-.", "1.5", "1.5.1", "1..5", "1,5", "1e5", "1E5",
	"1e+5", "1e-5", "1e", "1e+", "e5", ".e5", "1.e5", ".5e1", "1e5.5", "1e1e1", "1x", "x1", "0x", "0x1", "0x1p0", "0X1P0", "0x1p-2", "0x1p+2",
	"0x.8p1", "0x1.p1", "0x.p1", "0xp1", "0x1p", "0x1e2", "0x1.8p1", "0xabcdefp4", "0xgp1", "1p2", "0b1", "0o7", "0b1p0", "1_000", "1_0.0_1",
	"1__0", "_1", "1_", "1_.5", "1._5", "1.5_", "1e_5", "1e5_", "1_e5", "1e1_0", "0_1", "0x_1p0", "0x1_0p0", "0x1_p0", "0x1p_0", "0x1p1_0",
	"-_1", "1_23.50_0_0e+1_2", "nan", "NaN", "NAN", "+nan", "-nan", "nan1", "inf", "Inf", "+inf", "-inf", "INF", "infinity", "-Infinity", "infinit",
	"infinityx", "i", "in", "n", " 1", "1 ", "1\n", "\t1", "1 2", "1e400", "-1e400", "2e308", "1.7976931348623157e308", "1.7976931348623159e308",
	"1e-400", "5e-324", "2e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "4.9e-324", "2.2250738585072011e-308", "0x1p1023", "0x1p1024",
	"0x1.fffffffffffff7p1023", "0x1.fffffffffffff8p1023", "0x1.fffffffffffffp1023", "0x1p-1074", "0x1p-1075", "0x1.8p-1075", "0x1p-99999", "0x1p99999",
	"0x1.00000000000008p0", "0x1.000000000000081p0", "0x1.00000000000018p0", "0x10000000000000081p0", "0x123456789abcdef0123456789abcdefp0",
	"123456789012345678901234567890", "0.1", "0.30000000000000004", "9007199254740993", "9007199254740992.5", "9007199254740993.0000000000001", "1606364286",
	"20240115", "2024.01", "16.04", "1.10", "1.9", "47.40896403322944", "-27.930666514224427", "1e00000000000000000001", "1e99999999999999999999",
	"1e-99999999999999999999", "0e99999999999999999999", "0.0e400", "١", "１", "∞", "1é", "\u00a01", "1a", "b", "0x1P-2", "0X1p-2", "1d", "1f", "1L", "0d1", "'1'", "1%",
}

func main() {
	seed := flag.Uint64("seed", 1, "seed of the generator")
	count := flag.Int("count", 700, "how many texts to make besides those picked by hand")
	flag.Parse()
	random := rand.New(rand.NewPCG(*seed, 0))
	seen := map[string]bool{}
	texts := []string{}
	add := func(text string) {
		if !seen[text] {
			seen[text] = true
			texts = append(texts, text)
		}
	}
	for _, text := range picked {
		add(text)
	}
	for wanted := len(texts) + *count; len(texts) < wanted; {
		add(slip(random, picked[random.IntN(len(picked))]))
	}
	fmt.Printf("{\n\"go\": %q,\n\"rows\": [\n", runtime.Version())
	for i, text := range texts {
		line, err := json.Marshal(row(text))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		comma := ","
		if i == len(texts)-1 {
			comma = ""
		}
		fmt.Println(string(line) + comma)
	}
	fmt.Print("]\n}\n")
}

// slip returns the text with one character inserted, removed or replaced.
func slip(random *rand.Rand, text string) string {
	characters := []rune(text)
	marks := []rune("0123456789abcdefpxinty._+- ")
	mark := string(marks[random.IntN(len(marks))])
	at := random.IntN(len(characters) + 1)
	before, after := string(characters[:at]), string(characters[at:])
	if at == len(characters) || random.IntN(3) == 0 {
		return before + mark + after
	}
	after = string(characters[at+1:])
	if random.IntN(2) == 0 {
		return before + mark + after
	}
	return before + after
}

func row(text string) Row {
	number, err := strconv.ParseFloat(text, 64)
	if failed := (*strconv.NumError)(nil); errors.As(err, &failed) {
		return Row{Text: text, Error: failed.Err.Error()}
	}
	if math.IsNaN(number) {
		return Row{Text: text, Bits: "nan"}
	}
	return Row{Text: text, Bits: fmt.Sprintf("%016x", math.Float64bits(number))}
}
