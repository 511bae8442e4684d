#include "base/program/arguments.hpp"

#include <algorithm>
#include <deque>
#include <limits>

#include <CLI/CLI.hpp>

namespace longhaul {
namespace {

/// The text to print where help or the version was asked for; nullopt: the line was read.
template <typename Parse>
std::optional<std::string> text_asked_for(const CLI::App& app, Parse&& parse) {
  try {
    parse();
  } catch (const CLI::CallForHelp&) {
    return app.help();
  } catch (const CLI::CallForVersion& version) {
    return std::string{version.what()} + '\n';
  } catch (const CLI::ParseError& problem) {
    throw ArgumentError{problem.what()};
  }
  return std::nullopt;
}

}  // namespace

struct Argument::Declared {
  CLI::Option* option;
};

Argument& Argument::required() {
  declared_->option->required();
  return *this;
}

Argument& Argument::shows_default() {
  declared_->option->capture_default_str();
  return *this;
}

Argument& Argument::within(int least, int most) {
  declared_->option->check(CLI::Range(least, most));
  return *this;
}

Argument& Argument::within(std::int64_t least, std::int64_t most) {
  declared_->option->check(CLI::Range(least, most));
  return *this;
}

Argument& Argument::within(double least, double most) {
  declared_->option->check(CLI::Range(least, most));
  return *this;
}

Argument& Argument::one_of(const std::vector<std::string>& words) {
  declared_->option->check(CLI::IsMember(words));
  return *this;
}

Argument& Argument::one_value_each() {
  declared_->option->allow_extra_args(false);
  return *this;
}

Argument& Argument::values(int least, int most) {
  declared_->option->expected(least, most);
  return *this;
}

Argument& Argument::takes_no_value() {
  declared_->option->disable_flag_override();
  return *this;
}

Argument& Argument::group(const std::string& name) {
  declared_->option->group(name);
  return *this;
}

Argument& Argument::needs(const Argument& other) {
  declared_->option->needs(other.declared_->option);
  return *this;
}

Argument& Argument::excludes(const Argument& other) {
  declared_->option->excludes(other.declared_->option);
  return *this;
}

struct Arguments::State {
  std::unique_ptr<CLI::App> owned;  ///< none in commands: the program's app owns theirs
  CLI::App* app = nullptr;
  const Arguments* parent = nullptr;
  std::deque<Argument::Declared> declared;
  std::vector<std::unique_ptr<Arguments>> commands;
};

Arguments::Arguments(const std::string& description) : state_{std::make_unique<State>()} {
  state_->owned = std::make_unique<CLI::App>(description);
  state_->app = state_->owned.get();
}

Arguments::Arguments(std::unique_ptr<State> state) : state_{std::move(state)} {}
Arguments::~Arguments() = default;

Argument Arguments::add(const std::string& names, Target target, const std::string& description) {
  CLI::Option* const option = std::visit(
      [&](auto* value) { return state_->app->add_option(names, *value, description); }, target);
  return Argument{state_->declared.emplace_back(Argument::Declared{option})};
}

Argument Arguments::flag(const std::string& names, bool& value, const std::string& description) {
  return Argument{state_->declared.emplace_back(
      Argument::Declared{state_->app->add_flag(names, value, description)})};
}

Arguments& Arguments::command(const std::string& name, const std::string& description) {
  auto state = std::make_unique<State>();
  state->app = state_->app->add_subcommand(name, description);
  state->parent = this;
  state_->app->require_subcommand(0, 1);
  state_->commands.emplace_back(new Arguments{std::move(state)});
  return *state_->commands.back();
}

void Arguments::program(const std::string& name) { state_->app->name(name); }
void Arguments::version(const std::string& text) {
  state_->app->set_version_flag("--version", text);
}
void Arguments::footer(const std::string& text) { state_->app->footer(text); }
void Arguments::keeps_unknown() { state_->app->allow_extras(); }

std::optional<std::string> Arguments::parse(int argc, const char* const* argv) {
  return text_asked_for(*state_->app, [&] { state_->app->parse(argc, argv); });
}

std::optional<std::string> Arguments::parse(std::span<const std::string> words) {
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  return text_asked_for(*state_->app, [&] { state_->app->parse(reversed); });
}

std::string Arguments::name() const { return state_->app->get_name(); }
const Arguments* Arguments::parent() const { return state_->parent; }

std::vector<std::string> Arguments::commands() const {
  std::vector<std::string> names;
  for (const auto& command : state_->commands) names.push_back(command->name());
  return names;
}

Arguments& Arguments::at(const std::string& name) {
  const auto found = std::ranges::find(state_->commands, name, &Arguments::name);
  LONGHAUL_ASSERT(found != state_->commands.end(), "{}", name);
  return **found;
}

std::vector<std::string> Arguments::options() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*state_->app).get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// By the number of values that they take in all.
std::vector<std::string> Arguments::options_taking(int least, int most) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : std::as_const(*state_->app).get_options()) {
    const int values = option->get_items_expected_max();
    if (values < least || values > most) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> Arguments::flags() const { return options_taking(0, 0); }
std::vector<std::string> Arguments::repeatable() const {
  return options_taking(2, std::numeric_limits<int>::max());
}

const Arguments* Arguments::chosen() const {
  const auto found = std::ranges::find_if(
      state_->commands,
      [](const std::unique_ptr<Arguments>& command) { return command->state_->app->parsed(); });
  return found == state_->commands.end() ? nullptr : found->get();
}

std::vector<std::string> Arguments::left() const { return state_->app->remaining(); }

std::optional<int> read_int(const std::string& text) {
  int number = 0;
  return CLI::detail::lexical_cast(text, number) ? std::optional{number} : std::nullopt;
}

std::optional<double> read_double(const std::string& text) {
  double number = 0;
  return CLI::detail::lexical_cast(text, number) ? std::optional{number} : std::nullopt;
}

}  // namespace longhaul
