// Parses formulas, such as "1 - 9 / price" or "template == 'bold' and price > 20"; the same grammar as in
// manul/utils/formulas.py, which writes those in files.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "c_api/json.hpp"
#include "knobs/operation_names.hpp"

namespace manul::api {

// An operation on other formulas, or a "number", a "name" or a "text" with its value.
struct Formula {
  std::string operation;
  std::vector<Formula> parts = {};
  double number = 0.0;
  std::string text = {};

  bool is_name(std::string_view name) const { return operation == "name" && text == name; }

  // The names in order of appearance.
  void names(std::vector<std::string>& all) const {
    if (operation == "name" && std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
    for (const Formula& part : parts) part.names(all);
  }
};

inline bool is_comparison(std::string_view operation) {
  for (const char* each : {"<", "<=", ">", ">=", "==", "!="})
    if (operation == each) return true;
  return false;
}

class FormulaParser {
 public:
  explicit FormulaParser(std::string_view text) : text_(text) {
    if (text.size() > most_bytes) wrong();
    read_tokens();
  }

  // A condition, and the condition after "if" under which it holds, or nothing.
  std::pair<Formula, std::vector<Formula>> rule() {
    Formula rule = disjunction();
    std::vector<Formula> where;
    if (take("if")) where.push_back(disjunction());
    if (at_ < tokens_.size()) wrong();
    check_value(rule);
    for (const Formula& each : where) check_value(each);
    return {rule, where};
  }

 private:
  static constexpr std::size_t most_bytes = 2000, most_parts = 200, deepest = 40;
  enum class TokenKind : std::uint8_t { number, name, text, sign, word };
  struct Token {
    TokenKind kind;
    std::string value;
  };

  [[noreturn]] void wrong() const { fail("limits", "file is damaged: limit %s is no formula.", quoted(text_).c_str()); }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }

  void read_tokens() {
    std::size_t at = 0;
    const auto peek = [&](std::size_t ahead) { return at + ahead < text_.size() ? text_[at + ahead] : '\0'; };
    const auto digits = [&] {
      while (is_digit(peek(0))) ++at;
    };
    while (at < text_.size()) {
      const std::size_t start = at;
      const char c = peek(0);
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++at;
      } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
        digits();
        if (peek(0) == '.') ++at, digits();
        const bool sign = peek(1) == '+' || peek(1) == '-';
        if ((peek(0) == 'e' || peek(0) == 'E') && is_digit(peek(sign ? 2 : 1))) at += sign ? 2 : 1, digits();
        tokens_.push_back({TokenKind::number, std::string(text_.substr(start, at - start))});
      } else if (begins_name(c)) {
        do {
          at += peek(0) == '.' ? 1 : 0;
          while (begins_name(peek(0)) || is_digit(peek(0))) ++at;
        } while (peek(0) == '.' && (begins_name(peek(1)) || is_digit(peek(1))));
        std::string name(text_.substr(start, at - start));
        const bool word =
            name == "and" || name == "or" || name == "not" || name == "if" || name == "else" || name == "in";
        tokens_.push_back({word ? TokenKind::word : TokenKind::name, std::move(name)});
      } else if (c == '`' || c == '\'' || c == '"') {
        const std::size_t end = text_.find(c, at + 1);
        if (end == std::string_view::npos || (c == '`' && end == at + 1)) wrong();
        tokens_.push_back(
            {c == '`' ? TokenKind::name : TokenKind::text, std::string(text_.substr(at + 1, end - at - 1))});
        at = end + 1;
      } else {
        const std::string two(text_.substr(at, 2));
        const bool both = two == "**" || two == "<=" || two == ">=" || two == "==" || two == "!=";
        if (!both && std::string_view("-+*/<>(),").find(c) == std::string_view::npos) wrong();
        tokens_.push_back({TokenKind::sign, both ? two : std::string(1, c)});
        at += both ? 2 : 1;
      }
    }
  }

  bool next_is(std::string_view value) const {
    return at_ < tokens_.size() && tokens_[at_].value == value &&
           (tokens_[at_].kind == TokenKind::sign || tokens_[at_].kind == TokenKind::word);
  }

  bool take(std::string_view value) {
    const bool taken = next_is(value);
    at_ += taken ? 1 : 0;
    return taken;
  }

  void need(std::string_view value) {
    if (!take(value)) wrong();
  }

  void check_value(const Formula& formula) const {
    if (formula.operation == "text") wrong();
  }

  Formula make(std::string_view operation, std::vector<Formula> parts) {
    if (++parts_ > most_parts) wrong();
    for (const Formula& part : parts) check_value(part);
    return {std::string(operation), std::move(parts)};
  }

  struct Deeper {
    explicit Deeper(FormulaParser& parser) : parser(parser) {
      if (++parser.depth_ > deepest) parser.wrong();
    }
    ~Deeper() { --parser.depth_; }
    FormulaParser& parser;
  };

  Formula conditional() {
    const Deeper deeper(*this);
    Formula formula = disjunction();
    if (!take("if")) return formula;
    Formula condition = disjunction();
    need("else");
    Formula otherwise = conditional();
    return make("if", {std::move(condition), std::move(formula), std::move(otherwise)});
  }

  Formula disjunction() {
    Formula formula = conjunction();
    while (take("or")) formula = make("or", {formula, conjunction()});
    return formula;
  }

  Formula conjunction() {
    Formula formula = negation();
    while (take("and")) formula = make("and", {formula, negation()});
    return formula;
  }

  Formula negation() {
    std::size_t nots = 0;
    while (take("not")) ++nots;
    Formula formula = comparison();
    for (; nots > 0; --nots) formula = make("not", {formula});
    return formula;
  }

  Formula comparison() {
    Formula left = sum();
    if (take("in")) return membership(left);
    if (take("not")) {
      need("in");
      return make("not", {membership(left)});
    }
    std::vector<Formula> chain;
    while (at_ < tokens_.size() && tokens_[at_].kind == TokenKind::sign && is_comparison(tokens_[at_].value)) {
      const std::string sign = tokens_[at_++].value;
      Formula right = sum();
      Formula each = compare(sign, left, right);
      if (chain.empty())
        chain.push_back(each);
      else
        chain[0] = make("and", {chain[0], each});
      left = right;
    }
    return chain.empty() ? left : chain[0];
  }

  Formula compare(const std::string& sign, Formula left, Formula right) {
    if (left.operation == "text" && right.operation == "name") std::swap(left, right);
    if (left.operation == "name" && right.operation == "text" && (sign == "==" || sign == "!=")) {
      make("number", {});  // counts
      return {sign, {left, right}};
    }
    return make(sign, {left, right});
  }

  Formula membership(const Formula& left) {
    need("(");
    Formula formula = compare("==", left, sum());
    while (take(",") && !next_is(")")) formula = make("or", {formula, compare("==", left, sum())});
    need(")");
    return formula;
  }

  Formula sum() {
    Formula formula = term();
    while (next_is("+") || next_is("-")) {
      const std::string sign = tokens_[at_++].value;
      formula = make(sign, {formula, term()});
    }
    return formula;
  }

  Formula term() {
    Formula formula = negative();
    while (next_is("*") || next_is("/")) {
      const std::string sign = tokens_[at_++].value;
      formula = make(sign, {formula, negative()});
    }
    return formula;
  }

  Formula negative() {
    const Deeper deeper(*this);
    if (take("-")) return make("negative", {negative()});
    return take("+") ? negative() : power();
  }

  Formula power() {
    Formula base = atom();
    return take("**") ? make("**", {base, negative()}) : base;
  }

  Formula atom() {
    if (take("(")) {
      Formula formula = conditional();
      need(")");
      return formula;
    }
    if (at_ == tokens_.size() || tokens_[at_].kind == TokenKind::sign || tokens_[at_].kind == TokenKind::word) wrong();
    const Token token = tokens_[at_++];
    Formula formula = make(token.kind == TokenKind::number ? "number"
                           : token.kind == TokenKind::text ? "text"
                                                           : "name",
                           {});
    formula.text = token.value;
    if (token.kind == TokenKind::number) {
      formula.number = Json().parse(json_number(token.value), "limits").number();
      if (!std::isfinite(formula.number)) wrong();
    }
    if (token.kind != TokenKind::name) return formula;
    if (token.value == "True" || token.value == "False") return {"number", {}, token.value == "True" ? 1.0 : 0.0};
    return take("(") ? call(token.value) : formula;
  }

  // JSON has no numbers such as .5, 5. and 007.
  static std::string json_number(std::string text) {
    std::size_t zeros = 0;
    while (zeros + 1 < text.size() && text[zeros] == '0' && is_digit(text[zeros + 1])) ++zeros;
    text.erase(0, zeros);
    if (text[0] == '.') text.insert(0, 1, '0');
    const std::size_t point = text.find('.');
    if (point != std::string::npos && (point + 1 == text.size() || !is_digit(text[point + 1])))
      text.insert(point + 1, 1, '0');
    return text;
  }

  Formula call(const std::string& name) {
    const bool several = name == "min" || name == "max";
    if (!several && name != "abs" && name != "exp" && name != "log") wrong();
    std::vector<Formula> arguments = {conditional()};
    while (take(",")) arguments.push_back(conditional());
    need(")");
    if (several ? arguments.size() < 2 : arguments.size() != 1) wrong();
    if (!several) return make(name, {arguments[0]});
    Formula formula = make(name, {arguments[0], arguments[1]});
    for (std::size_t i = 2; i < arguments.size(); ++i) formula = make(name, {formula, arguments[i]});
    return formula;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0, parts_ = 0, depth_ = 0;
};

}  // namespace manul::api
